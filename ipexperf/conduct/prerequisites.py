"""Prepare what a case needs before its launches: a memory check, trained weights, a quantised network."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ipexperf import scratch
from ipexperf.bench import registry
from ipexperf.bench.api import Device, Mode, Settings
from ipexperf.bench.artifacts import artifact, weights
from ipexperf.bench.artifacts.footprint import Footprint
from ipexperf.bench.declaration import answer
from ipexperf.bench.machine.placement import ranges
from ipexperf.case import Case
from ipexperf.conduct import artifact_cache, lease, memory_fit, memory_limit, placement
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.worker import Worker, ask_facts
from ipexperf.dtypes import quantised
from ipexperf.errors import UsageError, WorkerError
from ipexperf.plan.options import Options
from ipexperf.variables import SOURCE

MAKING = {
    "weights": ("training weights", "the weights are trained again"),
    "quantise": ("quantising", "the network is quantised again"),
}
"""For each request that makes a file: the words for doing so, and for doing it again if the file is damaged."""

SAMPLES_OF_CALL, SECONDS_OF_CALL = 10, 0.2
"""The least of a function in a session, unless the command line says otherwise: a suite has hundreds."""
NO_LEASE = "measured without a lease: another process may have measured on the device at the same time"
"""The note of every launch with `--perf-lease off`."""


class Prerequisites:
    """Makes and remembers what the cases of a run load."""

    def __init__(
        self,
        options: Options,
        folder: Path,
        say: Callable[[str], None],
        *,
        memory: int | None = None,
        start: Callable[..., Worker] = Worker,
        seconds_left: Callable[[], float] = lambda: math.inf,
    ) -> None:
        """Take the options of the run. `memory` and `start` are for its `Conditions`.

        What takes longer to make than `seconds_left()` is stopped, and has `timed_out`.
        """
        self._options = options
        self._seconds_left = seconds_left
        self._memory = memory_limit.limit() if memory is None else memory
        self._start = start
        self.cache = options.cache or folder / ".ipexperf"
        self.load = tuple(str(Path(item).resolve()) if item.endswith(".py") else item for item in options.load)
        """The modules and files of `--perf-load`, with absolute paths."""
        self._say = say
        self.made: dict[Path, bool] = {}
        """The files that cases load, each with whether this run made it."""
        self.lease = lease.Lease(options.lease, say)
        self._shared = scratch.Scratch("shared")
        self._failed: dict[Path, WorkerError] = {}
        """Files that could not be made. The next case does not try again, because the seed is the same."""
        self._footprints: dict[tuple[str, int, str, bool], Footprint] = {}
        self._told_cores = False

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
        if mode.trains or not (model.learned or quantised(case.dtype)):
            return conditions
        made_of = weights.address(model, case.data, conditions.settings.data_file or "", case.size)
        if model.learned:
            path = self._weights(made_of, case, conditions)
            conditions = conditions.with_settings(weights=str(path))
        if quantised(case.dtype):
            made_of += source + (artifact_cache.digest(path) if model.learned else "")
            variables = {**conditions.variables, **({SOURCE: source} if source else {})}
            quantiser = dataclasses.replace(conditions, python=python or conditions.python, variables=variables)
            name = artifact.address(case, made_of, ask_facts(quantiser.python, (), quantiser.variables))
            path = self._ensure("quantise", self.cache / "quantised" / name, case, quantiser, artifact.SIDES)
            conditions = conditions.with_settings(artifact=str(path))
        return conditions

    def reserve(self, cases: Iterable[Case], seconds: float | None = None) -> None:
        """Hold the devices of these cases, until this is closed: probably for so many seconds."""
        index, cases = self._options.device_index, tuple(cases)
        claims = [claim for case in cases for claim in lease.of_case(case, index, os.environ)]
        self.lease.take(claims, seconds, lambda: self._look_at(cases))

    def _look_at(self, cases: Sequence[Case]) -> None:
        """While there is nothing but to wait: say what is wrong with the user's own networks, without their devices.

        Raise UsageError if no other case is left. Whoever measures now gives up little for it.
        """
        own = {case.model: case for case in cases if not case.is_call and registry.models.get(case.model).target}
        wrong = [f"{case.model}: {reason}" for case in own.values() if (reason := self._wrong_with(case))]
        if wrong and len(wrong) == len({case.model for case in cases}):
            raise UsageError("; ".join(wrong))
        for text in wrong:
            self._say(text)

    def _wrong_with(self, case: Case) -> str:
        """Why the network of a case can be neither built nor run, or an empty text."""
        try:
            self._ask_footprint(dataclasses.replace(case, device=lease.CPU), idle=True)
        except WorkerError as error:
            return error.reason
        return ""

    def close(self) -> None:
        """Give the devices back, and remove the folder that the workers of the run share."""
        self.lease.close()
        self._shared.close()

    def footprint(self, case: Case) -> Footprint:
        """The footprint of the case's network, which a worker determines once for all cases with the same network."""
        key = (case.model, case.size, case.data, registry.modes.get(case.mode).trains)
        if key not in self._footprints:
            self.reserve((case,))
            self._footprints[key] = self._ask_footprint(case)
        return self._footprints[key]

    def _ask_footprint(self, case: Case, *, idle: bool = False) -> Footprint:
        """Ask a worker, `idle` if it must leave the cores to all others."""
        plain, conditions = dataclasses.replace(case, stack="stock", dtype="fp32", knobs=()), self._conditions(case)
        with conditions.worker() as worker:
            if idle:
                os.sched_setscheduler(worker.pid, os.SCHED_IDLE, os.sched_param(0))
            return Footprint.parse(worker.ask("footprint", case=plain.to_json(), settings=asdict(conditions.settings)))

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

    def _weights(self, name: str, case: Case, conditions: Conditions) -> Path:
        """The weights of a case: a package's as they are, or trained here, possibly from a package's weights."""
        model = registry.models.get(case.model)
        if model.pretrained is not None:
            path, why_not = model.pretrained.find()
            if path is None:
                raise WorkerError("error", why_not or "no weights")
            if model.as_packaged:
                return Path(path)
            conditions = conditions.with_settings(weights=path)
        return self._ensure("weights", self.cache / "weights" / name, case, conditions)

    def _ensure(self, do: str, path: Path, case: Case, conditions: Conditions, sides: Sequence[str] = ()) -> Path:
        """A file that the case loads. A worker makes it if it is missing or damaged."""
        if path in self._failed:
            raise self._failed[path]
        doing, again = MAKING[do]
        maker = case
        if do == "weights":
            maker = dataclasses.replace(case, mode="train", stack="stock", dtype="fp32", knobs=())

        timeout = min(6 * conditions.timeout, max(self._seconds_left(), 1.0))

        def make(part: Path) -> None:
            with conditions.worker() as worker:
                request = {"case": maker.to_json(), "settings": asdict(conditions.settings)}
                worker.ask(do, path=str(part), timeout=timeout, **request)

        def damaged(flaw: str) -> None:
            self._say(f"{case.id}: {path.name} is not used, {flaw}: {again}")

        try:
            new = artifact_cache.make_once(path, make, damaged, sides)
        except WorkerError as error:
            blamed = WorkerError(error.outcome, f"{doing}: {error.reason}", error.log)
            if blamed.outcome == "error":
                self._failed[path] = blamed
            raise blamed from error
        self.made[path] = new or self.made.get(path, False)
        return path

    def _conditions(self, case: Case, python: str | None = None) -> Conditions:
        device = registry.devices.get(case.device)
        data = str(self._options.data) if self._options.data else None
        folder = None if case.is_call else registry.datasets.get(case.data).find(data)[0]
        settings = Settings(
            load=self.load,
            threads=self._options.threads,
            checkpoint=str(self.cache.resolve() / "checkpoints" / f"{case.id}.pt"),
            data_folder=data,
            data_file=folder,
            shared=str(self._shared.path),
            cards=self._cards(case),
        )
        conditions = Conditions(
            settings,
            python=self._options.python,
            variables=answer(Device, device, "variables", self._options.device_index, os.environ),
            accelerator=device.accelerator,
            timeout=self._options.timeout,
            samples=self._least("samples", SAMPLES_OF_CALL, case),
            seconds=self._least("seconds", SECONDS_OF_CALL, case),
            say=self._say,
            notes=(NO_LEASE,) if self._options.lease == lease.OFF else (),
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
        first = self._options.device_index
        try:
            return tuple(device.variables(first + number, os.environ) for number in range(processes))
        except UsageError as error:
            raise WorkerError("error", f"{processes} processes need a device each: {error}") from None
