"""Shared by all cases of a run: devices, files they load, fork servers, peak rates, lost devices, the budget."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ipexperf import lock, scratch
from ipexperf.bench import registry
from ipexperf.bench.api import Mode
from ipexperf.bench.artifacts import artifact, weights
from ipexperf.bench.artifacts.footprint import Footprint
from ipexperf.bench.cell import Settings
from ipexperf.bench.declaration import answer
from ipexperf.bench.device import Device
from ipexperf.bench.machine.inventory import Inventory
from ipexperf.bench.machine.placement import ranges
from ipexperf.bench.process import environment as surroundings
from ipexperf.case import Case
from ipexperf.conduct import artifact_cache, gate, lease, memory_fit, memory_limit, placement, process
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.roof import Roofs
from ipexperf.conduct.server import Server, ServerSpec, start_servers
from ipexperf.conduct.worker import Worker, ask_facts
from ipexperf.dtypes import quantised
from ipexperf.errors import ForkError, UsageError, WorkerError
from ipexperf.judge import growth
from ipexperf.judge.policy import GatePolicy
from ipexperf.plan import start
from ipexperf.plan.options import Options
from ipexperf.result import Launch, Measurement
from ipexperf.variables import SOURCE

MAKING = {
    "weights": ("training weights", "the weights are trained again"),
    "quantise": ("quantising", "the network is quantised again"),
}
"""For each request that makes a file: the words for doing so, and for doing it again if the file is damaged."""

SAMPLES_OF_CALL, SECONDS_OF_CALL = 10, 0.1
"""The least of a function in a session, unless the command line says otherwise: a suite has hundreds."""
NO_LEASE = "measured without a lease: another process may have measured on the device at the same time"
"""The note of every launch with `--perf-lease off`."""


def _server_spec(case: Case, conditions: Conditions, *, ahead: bool) -> ServerSpec:
    """The server that forks workers of this case. With `ahead`, it also imports what building the model does."""
    model = registry.models.get(case.model)
    imports = model.imports if ahead else ()
    variables = tuple(sorted(conditions.variables.items()))
    load, python, timeout = conditions.settings.load, conditions.python, conditions.timeout
    return ServerSpec(case.stack, load, model.needs, imports, python, variables, timeout)


@dataclasses.dataclass(frozen=True, slots=True)
class Forking:
    """The fork servers of one round. With none, its workers start fresh."""

    servers: Mapping[ServerSpec, Server]
    ahead: bool = True
    """Whether the servers have imported what building the models imports."""

    def conditions(self, case: Case, conditions: Conditions) -> Conditions:
        """The conditions, with the server that the workers of this case are forked from if there is one."""
        server = self.servers.get(_server_spec(case, conditions, ahead=self.ahead)) if self.servers else None
        if server is None:
            return conditions
        settings = dataclasses.replace(conditions.settings, forked=True)
        return dataclasses.replace(conditions, settings=settings, server=server)

    def forked(self, case: Case, conditions: Conditions) -> Conditions | None:
        """The conditions of a worker of this case that is forked. None if no server may fork it."""
        conditions = self.conditions(case, conditions)
        return conditions if conditions.server is not None else None


FRESH = Forking({})


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


class Conductor:
    """Shared state of a run."""

    def __init__(
        self,
        options: Options,
        folder: Path,
        say: Callable[[str], None],
        *,
        policy: GatePolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
        memory: int | None = None,
        start: Callable[..., Worker] = Worker,
        punctual: bool = False,
    ) -> None:
        """Prepare a run. `policy`, `memory` and `start` are for its `Conditions`; the budget runs by `clock`.

        `punctual`: when the budget is spent, also stop what is made for a case, such as its weights. Otherwise it goes
        on, so that the next run finds it made.
        """
        self._options = options
        self._folder = folder
        self._say = say
        self._start = start
        self._policy = policy or gate.POLICY
        self._memory = memory_limit.limit() if memory is None else memory
        self._clock = clock
        self._punctual = punctual
        self._deadline = clock() + options.budget if options.budget else None
        self.lease = lease.Lease(options.lease, say)
        self.load = tuple(str(Path(item).resolve()) if item.endswith(".py") else item for item in options.load)
        """The modules and files of `--perf-load`, with absolute paths."""
        self._cache = scratch.cache(options.cache, folder)
        self._shared = scratch.Scratch("shared")
        self._failed: dict[Path, WorkerError] = {}
        """Files that could not be made. The next case does not try again, because the seed is the same."""
        self._footprints: dict[tuple[str, int, str, bool], Footprint] = {}
        self._told_cores = False
        self._lost: dict[str, str] = {}
        """The devices that were lost, each with the case that lost it."""
        self._unforkable = False
        """Whether a server could not fork. Later rounds do not try again."""
        self._roofs = None if "roof" in options.without else Roofs(self._cache, say)

    @functools.cached_property
    def _source(self) -> dict[str, Any]:
        """The commit that is measured. Lazy, because asking git during collection would slow that down."""
        return surroundings.source(self._folder)

    def ready(self, case: Case, python: str | None = None, source: str = "") -> Conditions:
        """The conditions of a case. Makes what the case loads, unless the cache has it.

        Every measurement calls this first, so this takes the lease on its device.

        Inference loads trained weights, and int8 a network quantised by the interpreter that will run it. `python` is
        that interpreter if it is not that of the run. Libraries that its workers preload are its own. `source` is the
        value of `SOURCE` for its workers, if another tree of files takes the place of the user's.
        """
        self.reserve((case,))
        conditions = self._conditions(case, python)
        if case.is_call:
            return conditions
        self._fit(case, conditions)
        model, mode = registry.models.get(case.model), registry.modes.get(case.mode)
        if mode.trains or not (model.trained or quantised(case.dtype)):
            return conditions
        made_of = weights.address(model, case.data, conditions.settings.data_file or "", case.size)
        if model.trained:
            path = self._ensure("weights", self._cache / "weights" / made_of, case, conditions)
            conditions = conditions.with_settings(weights=str(path))
        if quantised(case.dtype):
            made_of += source + (artifact_cache.digest(path) if model.trained else "")
            variables = {**conditions.variables, **({SOURCE: source} if source else {})}
            quantiser = dataclasses.replace(conditions, python=python or conditions.python, variables=variables)
            name = artifact.address(case, made_of, ask_facts(quantiser.python, {}, quantiser.variables))
            path = self._ensure("quantise", self._cache / "quantised" / name, case, quantiser, artifact.SIDES)
            conditions = conditions.with_settings(artifact=str(path))
        return conditions

    def reserve(self, cases: Iterable[Case], seconds: float | None = None) -> None:
        """Hold the devices of these cases, until this is closed. Others are told: probably for so many seconds."""
        claims = (lease.of_case(case, self._options.index(case.device), os.environ) for case in cases)
        self.lease.take(set().union(*claims), seconds)

    def give_back(self) -> None:
        """Give the devices back until the next case is ready. Fork servers and the like stay."""
        self.lease.close()

    @contextlib.contextmanager
    def forking(self, cases: Sequence[tuple[Case, Conditions]], arms: int) -> Iterator[Forking]:
        """Start the servers from which one round of `arms` arms forks its workers, and end them with the block.

        There are none if the round must start fresh: forking would save no imports, a case may not be forked, or a
        server refuses. Each round has its own, so that address layout and hash seed are drawn anew every round.
        """
        with contextlib.ExitStack() as stack:
            servers: Mapping[ServerSpec, Server] = {}
            ahead = any(registry.models.get(case.model).imports for case, _ in cases)
            try:
                try:
                    servers = stack.enter_context(start_servers(self._specs(cases, arms, ahead=ahead)))
                except (ForkError, WorkerError) as error:
                    if not ahead:
                        raise
                    ahead = False
                    self._say(f"each worker imports the packages of the network by itself: {error}")
                    servers = stack.enter_context(start_servers(self._specs(cases, arms, ahead=ahead)))
            except (ForkError, WorkerError) as error:
                self._unforkable = True
                self._say(f"workers are started fresh in every round: {error}")
            yield Forking(servers, ahead)

    def _specs(self, cases: Sequence[tuple[Case, Conditions]], arms: int, *, ahead: bool) -> set[ServerSpec]:
        """The servers that these cases need, or none if their round must start fresh."""
        if self._options.start != start.AUTO or self._unforkable:
            return set()
        placed = bool((wish := self._options.placement) and wish.places)
        if any(start.why_fresh(case, placed=placed) for case, _ in cases):
            return set()
        specs = {_server_spec(case, conditions, ahead=ahead) for case, conditions in cases}
        return specs if len(specs) < arms else set()

    def quarantine_if_lost(self, case: Case, launches: Iterable[Launch]) -> None:
        """Quarantine the device of the case if one of these launches lost it: nothing more is launched there."""
        if any(launch.outcome == "device_lost" for launch in launches):
            self._lost.setdefault(case.device, case.id)

    def quarantined(self, case: Case) -> list[Launch]:
        """A launch record that says so if the device of the case was lost, else none."""
        if case.device not in self._lost:
            return []
        reason = f"{case.device} is in quarantine since {self._lost[case.device]} lost it: not launched"
        return [Launch(0, "device_lost", reason)]

    def close(self) -> None:
        """Remove shared files, and give the devices back."""
        self.lease.close()
        self._shared.close()

    def roofed(
        self, launches: list[Launch], case: Case, conditions: Conditions, environment: Mapping[str, Any]
    ) -> list[Launch]:
        """Add to the launches what share of the roof they reached, unless that is switched off."""
        if self._roofs is None or not environment:
            return launches
        return self._roofs.with_shares(launches, case, conditions, environment)

    def left(self) -> float:
        """The seconds of the budget that are left. Time that was spent waiting for a device is not taken from it."""
        if self._deadline is None:
            return math.inf
        return self._deadline + self.lease.seconds_waited - self._clock()

    def spent(self) -> bool:
        """Whether the budget is spent. Nothing that takes long may then begin."""
        return self.left() < 0

    def measurement(
        self,
        case: Case,
        launches: Sequence[Launch],
        environment: Mapping[str, Any],
        started: str,
        cut: str = "",
    ) -> Measurement:
        """The record of a case. If no worker could describe the machine, describe it as far as we can."""
        if not environment:
            machine = {**surroundings.hardware(), "accelerator": None, "threads": None}
            environment = {
                "machine_key": surroundings.machine_key(machine),
                "hardware": machine,
                "software": {"torch": None, "ipex": None},
                "variables": {},
            }
        locked = self._locked({**environment, "git": self._source})
        mode = registry.modes.get(case.mode)
        if not mode.requests:  # whose samples are of several workers
            launches = growth.noted(launches)
        return Measurement(case, tuple(launches), locked, started, now(), cut)

    def _locked(self, environment: Mapping[str, Any]) -> dict[str, Any]:
        """The environment with the lock of its software in place of the worker's inventory."""
        document = dict(environment)
        inventory = document.pop("inventory", None)
        if inventory is not None:
            recorded = lock.make(
                Inventory.from_json(inventory),
                software=document["software"],
                variables=process.tuned_by_user(os.environ),
                placement=str(self._options.placement or ""),
            )
            document |= {"lock": recorded.digest, "lock_text": recorded.text}
        return document

    def footprint(self, case: Case) -> Footprint:
        """The footprint of the case's network, which a worker determines once for all cases with the same network."""
        key = (case.model, case.size, case.data, registry.modes.get(case.mode).trains)
        if key not in self._footprints:
            self.reserve((case,))
            plain, conditions = dataclasses.replace(case, stack="stock", dtype="fp32", knobs=()), self._conditions(case)
            with conditions.worker() as worker:
                told = worker.ask("footprint", case=plain.to_json(), settings=asdict(conditions.settings))
            self._footprints[key] = Footprint.parse(told)
        return self._footprints[key]

    def _fit(self, case: Case, conditions: Conditions) -> None:
        """Raise WorkerError if the case is too large for this machine."""
        if not registry.devices.get(case.device).hosted or not memory_fit.larger(case):
            return
        try:
            footprint = self.footprint(case)
        except WorkerError as error:
            if error.outcome == "out_of_memory":
                raise
            self._say(f"{case.id}: its memory could not be estimated beforehand: {error.reason}")
            return
        processes = max(1, len(conditions.instances), registry.modes.get(case.mode).processes(case))
        memory_fit.refuse(case, footprint, conditions.memory, processes)

    def _ensure(self, do: str, path: Path, case: Case, conditions: Conditions, sides: Sequence[str] = ()) -> Path:
        """A file that the case loads. A worker makes it if it is missing or damaged."""
        if path in self._failed:
            raise self._failed[path]
        doing, again = MAKING[do]
        maker = case
        if do == "weights":
            maker = dataclasses.replace(case, mode="train", stack="stock", dtype="fp32", knobs=())

        timeout = min(6 * conditions.timeout, max(self.left() if self._punctual else math.inf, 1.0))

        def make(part: Path) -> None:
            with conditions.worker() as worker:
                request = {"case": maker.to_json(), "settings": asdict(conditions.settings)}
                worker.ask(do, path=str(part), timeout=timeout, **request)

        def damaged(flaw: str) -> None:
            self._say(f"{case.id}: {path.name} is not used, {flaw}: {again}")

        try:
            artifact_cache.make_once(path, make, damaged, sides)
        except WorkerError as error:
            blamed = WorkerError(error.outcome, f"{doing}: {error.reason}", error.log)
            if blamed.outcome == "error":
                self._failed[path] = blamed
            raise blamed from error
        return path

    def _conditions(self, case: Case, python: str | None = None) -> Conditions:
        device = registry.devices.get(case.device)
        data = str(self._options.data) if self._options.data else None
        folder = None if case.is_call else registry.datasets.get(case.data).find(data)[0]
        settings = Settings(
            load=self.load,
            threads=self._options.threads,
            checkpoint=str(self._cache.resolve() / "checkpoints" / f"{case.id}.pt"),
            data_folder=data,
            data_file=folder,
            shared=str(self._shared.path),
            cards=self._cards(case),
        )
        conditions = Conditions(
            settings,
            python=self._options.python,
            variables=answer(Device, device, "variables", self._options.index(case.device), os.environ),
            accelerator=device.accelerator,
            timeout=self._options.timeout,
            samples=self._least("samples", SAMPLES_OF_CALL, case),
            seconds=self._least("seconds", SECONDS_OF_CALL, case),
            say=self._say,
            notes=(NO_LEASE,) if self._options.lease == lease.OFF else (),
            gate=self._policy,
            memory=self._memory,
            start=self._start,
        )
        openmp = registry.modes.get(case.mode).openmp
        options = dataclasses.replace(self._options, python=python or self._options.python)
        placed = placement.find(options, openmp)
        if placed is not None and placed.usual and device.hosted and not self._told_cores:
            self._told_cores = True
            self._say(placement.USUAL.format(ranges(placed.placement.cores or ())))
        return placement.apply(conditions, case, placed)

    def _least(self, name: str, of_call: float, case: Case) -> Any:
        """What the command line says of a launch's length, or the usual."""
        return of_call if case.is_call and name not in self._options.sources else getattr(self._options, name)

    def _cards(self, case: Case) -> tuple[Mapping[str, str], ...]:
        """Variables that give each process of a case a device of its own, if it has several processes."""
        mode, device = registry.modes.get(case.mode), registry.devices.get(case.device)
        processes = answer(Mode, mode, "processes", case)
        if processes == 1:
            return ()
        first = self._options.index(case.device)
        try:
            return tuple(device.variables(first + number, os.environ) for number in range(processes))
        except UsageError as error:
            raise WorkerError("error", f"{processes} processes need a device each: {error}") from None
