"""Measures cases: weights first where they are needed, then launches, with one more try for a contended one."""

from __future__ import annotations

import dataclasses
import functools
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ipexperf.bench import artifact, registry, weights
from ipexperf.bench import environment as surroundings
from ipexperf.bench.kinds import Settings
from ipexperf.case import Case
from ipexperf.conduct import instances, kept, launch, memory, pairs, placement, seal, yardstick
from ipexperf.conduct.launch import Conditions
from ipexperf.conduct.quarantine import Quarantine
from ipexperf.conduct.roof import Roofs
from ipexperf.conduct.server import Order, Servers
from ipexperf.conduct.worker import ask_facts
from ipexperf.errors import ForkError, UsageError, WorkerError
from ipexperf.judge.policy import PairPolicy
from ipexperf.plan import arms, start
from ipexperf.plan import yardstick as yardsticks
from ipexperf.plan.arms import ArmWords
from ipexperf.plan.options import Options
from ipexperf.result import Launch, Measurement

RETRIES = 1
FLAG = "--perf-against"
MAKING = {
    "weights": ("training weights", "the weights are trained again"),
    "quantise": ("quantising", "the network is quantised again"),
}
"""What a worker is asked to make before the launches, in words."""


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


class Conductor:
    """Holds what is the same for all cases of a run."""

    def __init__(self, options: Options, launches: int, folder: Path, say: Callable[[str], None]) -> None:
        self._options = options
        self._launches = launches
        self._cache = options.cache or folder / ".ipexperf"
        self._say = say
        self._quarantine = Quarantine()
        self._servers = Servers()
        self._roofs = None if options.no_roof else Roofs(self._cache, say)
        self.kept: dict[Path, bool] = {}
        """What cases load, each with whether it was made now."""
        self._footprints: dict[tuple[str, int, str, bool], Mapping[str, Any]] = {}
        self._folder = folder
        self._deadline = time.monotonic() + options.budget if options.budget else None

    @functools.cached_property
    def _source(self) -> dict[str, Any]:
        """The commit that is measured: asked of git with the first measurement, not while tests are collected."""
        return surroundings.source(self._folder)

    def _conditions(self, case: Case) -> Conditions:
        device = registry.devices.get(case.device)
        data = str(self._options.data) if self._options.data else None
        found, _ = registry.datasets.get(case.data).find(data)
        settings = Settings(
            load=tuple(str(Path(item).resolve()) if item.endswith(".py") else item for item in self._options.load),
            threads=self._options.threads,
            checkpoint=str(self._cache.resolve() / "checkpoints" / f"{case.id}.pt"),
            data_folder=data,
            data_file=found,
            cards=self._cards(case),
        )
        conditions = Conditions(
            settings,
            python=self._options.python,
            variables=device.variables(self._options.device_index, os.environ),
            accelerator=device.accelerator,
            timeout=self._options.timeout,
            samples=self._options.samples,
            seconds=self._options.seconds,
            say=self._say,
        )
        if self._options.yardstick:
            conditions = self._with_yardstick(case, conditions)
        openmp = registry.modes.get(case.mode).openmp
        return placement.given(conditions, case, placement.find(self._options, openmp))

    def _with_yardstick(self, case: Case, conditions: Conditions) -> Conditions:
        """The conditions with the yardstick that takes turns with the case, or with a note why none does."""
        if reason := yardsticks.why_not(case):
            return dataclasses.replace(conditions, notes=(*conditions.notes, f"no yardstick beside it: {reason}"))
        return dataclasses.replace(conditions, yardstick=yardstick.find(self._cache))

    def _cards(self, case: Case) -> tuple[Mapping[str, str], ...]:
        """What gives each process of a case a device of its own, where it has several."""
        processes, device = registry.modes.get(case.mode).processes(case), registry.devices.get(case.device)
        if processes == 1:
            return ()
        first = self._options.device_index
        try:
            return tuple(device.variables(first + number, os.environ) for number in range(processes))
        except UsageError as error:
            raise WorkerError("error", f"{processes} processes need a device each: {error}") from None

    def ready(self, case: Case, python: str | None = None) -> Conditions:
        """The conditions of a case, with what it loads: made once, kept by content.

        Inference has trained weights, and int8 a network that was quantised by the interpreter that will run it.
        """
        conditions = self._conditions(case)
        self._fit(case, conditions)
        model, mode = registry.models.get(case.model), registry.modes.get(case.mode)
        if mode.trains or not (model.learned or case.dtype == "int8"):
            return conditions
        made_of = weights.address(model, case.data, conditions.settings.data_file or "", case.size)
        if model.learned:
            path = self._weights(made_of, case, conditions)
            conditions = conditions.given(weights=str(path))
        if case.dtype == "int8":
            made_of += seal.digest(path) if model.learned else ""
            quantiser = dataclasses.replace(conditions, python=python or conditions.python)
            name = artifact.address(case, made_of, ask_facts(quantiser.python, (), quantiser.variables))
            path = self._made("quantise", self._cache / "quantised" / name, case, quantiser, artifact.SIDES)
            conditions = conditions.given(artifact=str(path))
        return conditions

    def footprint(self, case: Case) -> Mapping[str, Any]:
        """What the case's network takes, as a worker finds it: once for all cases that have the same."""
        key = (case.model, case.size, case.data, registry.modes.get(case.mode).trains)
        if key not in self._footprints:
            plain, conditions = dataclasses.replace(case, stack="stock", dtype="fp32", knobs=()), self._conditions(case)
            with conditions.worker() as worker:
                told = worker.ask("footprint", case=plain.to_json(), settings=asdict(conditions.settings))
            self._footprints[key] = told
        return self._footprints[key]

    def _fit(self, case: Case, conditions: Conditions) -> None:
        """Ends a case that is too large for this machine, before any of it is run."""
        if not registry.devices.get(case.device).hosted or not memory.larger(case):
            return
        try:
            found = self.footprint(case)
        except WorkerError as error:
            if error.outcome == "out_of_memory":
                raise
            self._say(f"{case.id}: whether it fits into memory is not known beforehand: {error.reason}")
            return
        processes = max(1, len(conditions.instances), registry.modes.get(case.mode).processes(case))
        memory.refuse(case, found, processes)

    def _weights(self, name: str, case: Case, conditions: Conditions) -> Path:
        """The weights of a case: those of a package as they are, all others made by us, some of a package's."""
        model = registry.models.get(case.model)
        if model.pretrained is not None:
            path, why_not = model.pretrained.find()
            if path is None:
                raise WorkerError("error", why_not or "no weights")
            if model.as_packaged:
                return Path(path)
            conditions = conditions.given(weights=path)
        return self._made("weights", self._cache / "weights" / name, case, conditions)

    def start(self, case: Case, conditions: Conditions) -> tuple[Case, Conditions]:
        """How launches of the case are started. Where they were to be forked and can't be, it is the plain case."""
        reason = start.why_fresh(case, self._options)
        if not reason and start.FORK in dict(case.knobs).values():
            needs = registry.models.get(case.model).needs
            try:
                order = Order(case.stack, conditions.settings.load, needs)
                server = self._servers.get(order, conditions.python, conditions.variables, conditions.timeout)
            except (ForkError, WorkerError) as error:
                reason = str(error)
                case = start.plain(case)
            else:
                note = f"forked from a server, which had imported for {server.seconds:.1f} s"
                return case, dataclasses.replace(conditions, server=server, notes=(note,))
        if not reason:
            return case, conditions
        note = f"started fresh, not forked: {reason}"
        self._say(f"{case.id}: {note}")
        return case, dataclasses.replace(conditions, notes=(note,))

    def close(self) -> None:
        """Ends what outlives a case."""
        self._servers.close()

    def _made(self, do: str, path: Path, case: Case, conditions: Conditions, sides: Sequence[str] = ()) -> Path:
        """What the case loads, made by a worker of its own where it is not there or damaged."""
        doing, again = MAKING[do]
        maker = case
        if do == "weights":
            maker = dataclasses.replace(case, mode="train", stack="stock", dtype="fp32", knobs=())

        def make(part: Path) -> None:
            with conditions.worker() as worker:
                request = {"case": maker.to_json(), "settings": asdict(conditions.settings)}
                worker.ask(do, path=str(part), timeout=6 * conditions.timeout, **request)

        def damaged(flaw: str) -> None:
            self._say(f"{case.id}: {path.name} is not used, {flaw}: {again}")

        try:
            made = kept.keep(path, make, damaged, sides)
        except WorkerError as error:
            raise WorkerError(error.outcome, f"{doing}: {error.reason}", error.log) from error
        self.kept[path] = made or self.kept.get(path, False)
        return path

    def measure(self, case: Case) -> Measurement:
        """All launches of a case. The first that fails is the last: its outcome is the case's."""
        started = now()
        launches = self._quarantine.launches(case)
        found: dict[str, Any] = {}
        if launches:
            return self._measurement(case, launches, found, started)
        # Weights may take longer to train than anything else: none are, once the budget is spent.
        if cut := self._cut(0):
            return self._measurement(case, launches, found, started, cut)
        try:
            conditions = self.ready(case)
        except WorkerError as error:
            ended = launch.ended(error, registry.devices.get(case.device).accelerator)
            launches.append(Launch(0, *ended, log=error.log))
            return self._measurement(case, launches, found, started)
        case, conditions = self.start(case, conditions)
        for index in range(self._launches):
            if cut := self._cut(index):
                break
            self._say(f"{case.id}: launch {index + 1} of {self._launches}")
            tries, environment = self._launch(case, index, len(launches), conditions)
            found = found or environment
            launches += tries
            if launches[-1].outcome != "ok":
                break
        return self._measurement(case, self._roofed(launches, case, conditions, found), found, started, cut)

    def against(
        self, case: Case, other: Case, words: ArmWords, policy: PairPolicy
    ) -> tuple[Measurement, pairs.Pairs | None]:
        """The case in pairs with another arm: its launches are its own workers. No pairs: none could begin."""
        started, recorded = now(), arms.measured(case, words)
        launches = self._quarantine.launches(case)
        if launches:
            return self._measurement(recorded, launches, {}, started), None
        if cut := self._cut(0):
            return self._measurement(recorded, launches, {}, started, cut), None
        accelerator = registry.devices.get(case.device).accelerator
        try:
            a, b = pairs.arm(self, other, words, f"the arm of {FLAG}"), pairs.arm(self, case, ArmWords())
        except WorkerError as error:
            launches.append(Launch(0, *launch.ended(error, accelerator), log=error.log))
            return self._measurement(recorded, launches, {}, started), None
        effort = pairs.Effort(spent=self.spent)
        found = pairs.measure(a, b, policy, effort, random.Random(), self._say)  # noqa: S311 - a start order, no secret
        launches += [dataclasses.replace(x.b.launch, against=x.a.launch.fingerprint) for x in found.taken]
        if found.error is not None:
            launches.append(Launch(len(launches), *launch.ended(found.error, accelerator), log=found.error.log))
        elif flaw := next((flaw for pair in found.taken if (flaw := pairs.wrong(pair.a.launch))), ""):
            launches.append(Launch(len(launches), "error", f"{a.name}: {flaw}"))
        environment = dict(found.taken[0].b.environment) if found.taken else {}
        launches = self._roofed(launches, case, b.conditions, environment)
        return self._measurement(recorded, launches, environment, started, found.stopped if found.cut else ""), found

    def _roofed(
        self, launches: list[Launch], case: Case, conditions: Conditions, environment: Mapping[str, Any]
    ) -> list[Launch]:
        """The launches with what they reached of the machine's ceilings, where that was not switched off."""
        if self._roofs is None or not environment or self.spent():
            return launches
        return self._roofs.over(launches, case, conditions, environment)

    def spent(self) -> bool:
        """Whether the budget is: nothing that takes long may begin then."""
        return self._deadline is not None and time.monotonic() > self._deadline

    def _cut(self, done: int) -> str:
        """Why no further launch may begin after so many, or an empty text."""
        if not self.spent():
            return ""
        when = f"after {done} of {self._launches} launches" if done else "before it began"
        return f"the budget (--perf-budget) was spent {when}"

    def _launch(
        self, case: Case, index: int, number: int, conditions: Conditions
    ) -> tuple[list[Launch], dict[str, Any]]:
        """A contended launch is measured again and only recorded; if it stays so, it says why its case is invalid.

        `index` counts the launches of the case, `number` the processes: one that was measured again had one too.
        """
        tries: list[Launch] = []
        found: dict[str, Any] = {}
        for attempt in range(RETRIES + 1):
            measure = instances.run if conditions.instances else launch.run
            done, environment = measure(case, number + attempt, conditions, accuracy=index == 0)
            tries.append(done)
            found = found or environment
            if not done.contended or attempt == RETRIES or self._cut(index):
                break
            self._say(f"{case.id}: launch {index + 1} again, {done.contended}")
        replaced = [dataclasses.replace(known, outcome="contended", reason=known.contended) for known in tries[:-1]]
        return [*replaced, tries[-1]], found

    def _measurement(
        self, case: Case, launches: list[Launch], found: dict[str, Any], started: str, cut: str = ""
    ) -> Measurement:
        self._quarantine.look(case, launches)
        if not found:
            machine = {**surroundings.hardware(), "accelerator": None, "threads": None}
            found = {
                "machine_key": surroundings.machine_key(machine),
                "hardware": machine,
                "software": {"torch": None, "ipex": None},
                "variables": {},
            }
        return Measurement(case, tuple(launches), {**found, "git": self._source}, started, now(), cut)
