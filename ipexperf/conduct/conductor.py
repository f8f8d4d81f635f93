"""Shared by all cases of a run: devices, files they load, fork servers, pulses, ceilings, lost devices, the budget."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ipexperf import lock
from ipexperf.bench import registry
from ipexperf.bench.machine.inventory import Inventory
from ipexperf.bench.process import environment as surroundings
from ipexperf.case import Case
from ipexperf.conduct import gate, process
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.prerequisites import Prerequisites
from ipexperf.conduct.pulse import Pulses
from ipexperf.conduct.roof import Roofs
from ipexperf.conduct.server import Order, Server, ServerSpec, start_servers
from ipexperf.conduct.worker import Worker
from ipexperf.errors import ForkError, WorkerError
from ipexperf.judge import growth
from ipexperf.judge.policy import GatePolicy
from ipexperf.plan import start
from ipexperf.plan.options import Options
from ipexperf.result import Launch, Measurement


def _server_spec(case: Case, conditions: Conditions, *, ahead: bool) -> ServerSpec:
    """The server that forks workers of this case. With `ahead`, it also imports what building the model does."""
    model = registry.models.get(case.model)
    order = Order(case.stack, conditions.settings.load, model.needs, model.imports if ahead else ())
    variables = tuple(sorted(conditions.variables.items()))
    return ServerSpec(order, conditions.python, variables, conditions.timeout)


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
        self._start = start
        self._policy = policy or gate.POLICY
        self._clock = clock
        self._prerequisites = Prerequisites(
            options, folder, say, memory=memory, start=start, seconds_left=self.left if punctual else lambda: math.inf
        )
        self._say = say
        self._lost: dict[str, str] = {}
        """The devices that were lost, each with the case that lost it."""
        self._unforkable = False
        """Whether a server could not fork. Later rounds do not try again."""
        self._roofs = None if "roof" in options.without else Roofs(self._prerequisites.cache, say)
        self._pulses = None if "pulse" in options.without else Pulses(self._pulse_worker, self._prerequisites.load, say)
        self._folder = folder
        self._placed = options.placement is not None
        self._deadline = clock() + options.budget if options.budget else None

    @functools.cached_property
    def _source(self) -> dict[str, Any]:
        """The commit that is measured. Lazy, because asking git during collection would slow that down."""
        return surroundings.source(self._folder)

    def ready(self, case: Case, python: str | None = None, source: str = "") -> Conditions:
        """The conditions of a case. Makes what the case loads, unless the cache has it."""
        conditions = self._prerequisites.ready(case, python, source)
        # The kernels of the pulse take longer than most functions, and need torch.
        return dataclasses.replace(conditions, gate=self._policy, pulse=None if case.is_call else self._pulses)

    def reserve(self, cases: Iterable[Case], seconds: float | None = None) -> None:
        """Take the lease on the devices of these cases now, rather than when each is ready to be measured.

        Others are told that it is probably for so many seconds.
        """
        self._prerequisites.reserve(cases, seconds)

    def give_back(self) -> None:
        """Give the devices back until the next case is ready. Fork servers and the like stay."""
        self._prerequisites.lease.close()

    def _pulse_worker(self, case: Case) -> Worker:
        """A worker that times the pulse kernels on the device of this case."""
        variables = registry.devices.get(case.device).variables(self._options.device_index, os.environ)
        return self._start(self._options.python, variables, self._options.timeout)

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
        if any(start.why_fresh(case, placed=self._placed) for case, _ in cases):
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
        """Stop pulse workers, remove shared files, and give the devices back."""
        if self._pulses:
            self._pulses.close()
        self._prerequisites.close()

    def roofed(
        self, launches: list[Launch], case: Case, conditions: Conditions, environment: Mapping[str, Any]
    ) -> list[Launch]:
        """Add to the launches what share of the machine's ceilings they reached, unless that is switched off.

        Once the budget is spent, ceilings that are not known yet are not measured any more.
        """
        if self._roofs is None or not environment:
            return launches
        return self._roofs.with_shares(launches, case, conditions, environment, measure=not self.spent())

    def left(self) -> float:
        """The seconds of the budget that are left. Time that was spent waiting for a device is not taken from it."""
        if self._deadline is None:
            return math.inf
        return self._deadline + self._prerequisites.lease.seconds_waited - self._clock()

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
        if not (mode.open_loop or mode.requests):  # where requests may wait longer and longer
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
