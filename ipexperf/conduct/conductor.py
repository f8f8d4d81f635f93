"""Measures cases, launch by launch or pair by pair, with more tries for a launch that was contended."""

from __future__ import annotations

import dataclasses
import functools
import os
import random
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ipexperf.bench import environment as surroundings
from ipexperf.bench import registry
from ipexperf.case import Case
from ipexperf.conduct import instances, launch, pairs
from ipexperf.conduct.launch import Conditions
from ipexperf.conduct.provisions import Provisions
from ipexperf.conduct.pulse import Pulses
from ipexperf.conduct.quarantine import Quarantine
from ipexperf.conduct.roof import Roofs
from ipexperf.conduct.server import Order, Servers
from ipexperf.conduct.worker import Worker
from ipexperf.errors import ForkError, WorkerError
from ipexperf.judge.policy import PairPolicy
from ipexperf.plan import arms, start
from ipexperf.plan.arms import ArmWords
from ipexperf.plan.options import Options
from ipexperf.result import Launch, Measurement

RETRIES = 1


def now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def _replaced(known: Launch) -> Launch:
    """A contended launch in whose place another was made: it is on record and does not count."""
    return dataclasses.replace(known, outcome="contended", reason=known.contended)


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """What a launch is to tell, and whether it is the last of its case."""

    accuracy: bool
    last: bool


class Conductor:
    """Holds what is the same for all cases of a run."""

    def __init__(self, options: Options, launches: int, folder: Path, say: Callable[[str], None]) -> None:
        self._options = options
        self._launches = launches
        self._provisions = Provisions(options, folder, say)
        self._say = say
        self._quarantine = Quarantine()
        self._servers = Servers()
        self._roofs = None if options.no_roof else Roofs(self._provisions.cache, say)
        self._pulses = None if options.no_pulse else Pulses(self._feeler, self._provisions.load, say)
        self._folder = folder
        self._deadline = time.monotonic() + options.budget if options.budget else None

    @functools.cached_property
    def _source(self) -> dict[str, Any]:
        """The commit that is measured: asked of git with the first measurement, not while tests are collected."""
        return surroundings.source(self._folder)

    def ready(self, case: Case, python: str | None = None) -> Conditions:
        """The conditions of a case, with what it loads: made where it is not there yet."""
        found = self._provisions.ready(case, python)
        return dataclasses.replace(found, pulse=self._pulses) if self._pulses else found

    def _feeler(self, case: Case) -> Worker:
        """The process that feels the pulse of the device of this case, and of all cases there."""
        variables = registry.devices.get(case.device).variables(self._options.device_index, os.environ)
        return Worker(self._options.python, variables, self._options.timeout)

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
        if self._pulses:
            self._pulses.close()

    def measure(self, case: Case) -> Measurement:
        """All launches of a case. The first that fails is the last: its outcome is the case's."""
        started = now()
        launches = self._quarantine.launches(case)
        if launches:
            return self._measurement(case, launches, {}, started)
        # Weights may take longer to train than anything else: none are, once the budget is spent.
        if cut := self._cut(0):
            return self._measurement(case, launches, {}, started, cut)
        return self._completed(case, [], {}, started, last=False)

    def again(self, case: Case, before: Measurement) -> Measurement:
        """The measurement with its contended launches made again, if there is time: its others stay what they are."""
        if self._quarantine.launches(case) or self.spent():
            return before
        kept = [_replaced(known) if known.contended else known for known in before.launches]
        found = self._completed(case, kept, dict(before.environment), before.started_at, last=True)
        return found if found.counted else before

    def _completed(
        self, case: Case, kept: list[Launch], found: dict[str, Any], started: str, *, last: bool
    ) -> Measurement:
        """Those that are kept, and the launches that are missing. Accuracy is asked of the first that is not contended.

        `last`: nobody measures the case again, so a contended one is asked rather than none.
        """
        try:
            conditions = self.ready(case)
        except WorkerError as error:
            ended = launch.ended(error, registry.devices.get(case.device).accelerator)
            failed = Launch(len(kept), *ended, log=error.log)
            return self._measurement(case, [*kept, failed], found, started)
        case, conditions = self.start(case, conditions)
        made: list[Launch] = []
        cut = ""
        for index in range(sum(known.outcome == "ok" for known in kept), self._launches):
            if cut := self._cut(index):
                break
            self._say(f"{case.id}: launch {index + 1} of {self._launches}")
            told = any(known.accuracy for known in (*kept, *made) if known.outcome == "ok")
            asked = Asked(accuracy=not told, last=last and index == self._launches - 1)
            tries, environment = self._launch(case, index, len(kept) + len(made), conditions, asked)
            found = found or environment
            made += tries
            if made[-1].outcome != "ok":
                break
        # Those that are kept have been held against the ceilings.
        return self._measurement(case, [*kept, *self._roofed(made, case, conditions, found)], found, started, cut)

    def against(
        self, case: Case, other: Case, words: ArmWords, policy: PairPolicy
    ) -> tuple[Measurement, pairs.Pairs | None]:
        """The case in pairs with another arm: its launches are its own workers. No pairs: none could begin."""
        started, recorded = now(), arms.measured(case, words)
        for side in (case, other):
            if launches := self._quarantine.launches(side):
                return self._measurement(recorded, launches, {}, started, of=side), None
        launches = []
        if cut := self._cut(0):
            return self._measurement(recorded, launches, {}, started, cut), None
        failed, name = other, f"the arm of {pairs.FLAG}"
        try:
            a = pairs.arm(self, other, words, name)
            failed, name = case, ""
            b = pairs.arm(self, case, ArmWords())
        except WorkerError as error:
            outcome, reason = launch.ended(error, registry.devices.get(failed.device).accelerator)
            launches.append(Launch(0, outcome, f"{name}: {reason}" if name else reason, log=error.log))
            return self._measurement(recorded, launches, {}, started, of=failed), None
        effort = pairs.Effort(spent=self.spent)
        found = pairs.measure(a, b, policy, effort, random.Random(), self._say)  # noqa: S311 - a start order, no secret
        launches += [dataclasses.replace(x.b.launch, against=x.a.launch.fingerprint) for x in found.taken]
        failed = case
        if found.error is not None:
            failed = other if found.error.reason.startswith(f"{a.name}: ") else case
            ended = launch.ended(found.error, registry.devices.get(failed.device).accelerator)
            launches.append(Launch(len(launches), *ended, log=found.error.log))
        elif flaw := next((flaw for pair in found.taken if (flaw := pairs.wrong(pair.a.launch))), ""):
            launches.append(Launch(len(launches), "error", f"{a.name}: {flaw}"))
        environment = dict(found.taken[0].b.environment) if found.taken else {}
        launches = self._roofed(launches, case, b.conditions, environment)
        cut = found.stopped if found.cut else ""
        return self._measurement(recorded, launches, environment, started, cut, of=failed), found

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
        self, case: Case, index: int, number: int, conditions: Conditions, asked: Asked
    ) -> tuple[list[Launch], dict[str, Any]]:
        """A contended launch is measured again at once and only recorded; the second try may be contended too.

        `index` counts the launches of the case, `number` the processes: one that was measured again had one too.
        """
        tries: list[Launch] = []
        found: dict[str, Any] = {}
        for attempt in range(RETRIES + 1):
            measure = instances.run if conditions.instances else launch.run
            final = attempt == RETRIES
            done, environment = measure(
                case, number + attempt, conditions, accuracy=asked.accuracy, final=final and asked.last
            )
            tries.append(done)
            found = found or environment
            if not done.contended or final or self._cut(index):
                break
            self._say(f"{case.id}: launch {index + 1} again, {done.contended}")
        return [*map(_replaced, tries[:-1]), tries[-1]], found

    def _measurement(
        self,
        case: Case,
        launches: list[Launch],
        found: dict[str, Any],
        started: str,
        cut: str = "",
        of: Case | None = None,
    ) -> Measurement:
        """The record. `of` is the arm whose failure it tells: a device that was lost is that arm's."""
        self._quarantine.look(of or case, launches)
        if not found:
            machine = {**surroundings.hardware(), "accelerator": None, "threads": None}
            found = {
                "machine_key": surroundings.machine_key(machine),
                "hardware": machine,
                "software": {"torch": None, "ipex": None},
                "variables": {},
            }
        return Measurement(case, tuple(launches), {**found, "git": self._source}, started, now(), cut)
