"""Run the cases of a cover within a budget, the most valuable first, and record what they prove."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipexperf.compare.group import GroupRun
from ipexperf.compare.request import GroupRequest
from ipexperf.compare.round import Effort
from ipexperf.conduct import gate
from ipexperf.conduct.conductor import Conductor
from ipexperf.errors import UsageError
from ipexperf.judge import screen
from ipexperf.judge.policy import GatePolicy, Policy
from ipexperf.ledger.records import OK, CaseRecord, Speed
from ipexperf.plan import features, groups
from ipexperf.plan.groups import Group
from ipexperf.report.speeds import Speeds
from ipexperf.result import accuracies

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.plan.cover import Planned, Planner
    from ipexperf.plan.options import Options
    from ipexperf.recorder import Recorder
    from ipexperf.result import Launch, Measurement, RoundRecord, Verdict

POLICY = Policy()
"""Nothing is compared with a baseline: the policy only says what failed or is invalid."""
ARMS = 4
"""Most cases of a round. An interruption, or the end of the budget, then costs little."""
EFFORT = Effort(turns=3, most=3, seconds=0.02)
"""Short rounds: what counts is the proof. A ratio says by its interval how little it was measured."""
ANYTHING = GatePolicy(others=1.0, steal=1.0, held_up=1.0, memory_pressure=1.0)
"""On a busy machine no turn is made again: a proof is as good there. That it was busy is said."""
LOG_LINES = 40
"""Lines of the log of a failed launch that are kept."""
FIRST_CASE = 15.0
"""Seconds that a case is expected to take before any has run."""


@dataclasses.dataclass(frozen=True, slots=True)
class Batch:
    """Cases that share a round, and the options of the conductor that runs them."""

    planned: tuple[Planned, ...]

    @property
    def options(self) -> Options:
        return self.planned[0].options

    @property
    def group(self) -> Group:
        cases = tuple(one.case for one in self.planned)
        return Group(groups.name(cases[0]), cases)


class Experiment:
    """Runs batches until all are done or the budget is spent. Results so far can be read at any time."""

    def __init__(
        self,
        planner: Planner,
        planned: Sequence[Planned],
        options: Options,
        say: Callable[[str], None],
    ) -> None:
        self.records: list[CaseRecord] = []
        self.refused: dict[str, str] = {}
        """Why cases could not be launched at all, such as a library that is not there, by uid."""
        self.environment: dict[str, Any] = {}
        """The environment of the first case that could say it."""
        self.software: dict[str, Any] = {}
        """Software of all cases: each stack imports its own."""
        self._planner = planner
        self._waiting = list(planned)
        self._options = options
        self._say = say
        self._began = time.monotonic()
        self._conductors: dict[str, Conductor] = {}
        self._costs: dict[str, list[float]] = {}
        """Seconds that the cases of each mode took."""

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return time.monotonic() - self._began

    @property
    def left(self) -> list[Case]:
        """The cases that have not run."""
        return [one.case for one in self._waiting]

    def run(self, recorder: Recorder, after: Callable[[], None] = lambda: None) -> None:
        """Run batch after batch. `after` is called after each, for instance to move a bar."""
        while self._waiting and (batch := self._next()) is not None:
            self._play(batch, recorder)
            self._waiting = [one for one in self._waiting if one not in batch.planned]
            self._waiting = [*self._again(batch), *self._waiting]
            after()

    def close(self) -> None:
        for conductor in self._conductors.values():
            conductor.close()

    def _next(self) -> Batch | None:
        """The next batch that is likely to end in time: the first waiting case, with others that can be compared."""
        for first in self._waiting:
            whole = features.is_whole(first.case)
            alike = [one for one in self._waiting if self._beside(one, first)] if whole else [first]
            for count in range(min(len(alike), ARMS), 0, -1):
                if sum(self._expected(one.case) for one in alike[:count]) <= self._budget - self.seconds:
                    return Batch(tuple(alike[:count]))
        return None

    @property
    def _budget(self) -> float:
        assert self._options.budget is not None  # noqa: S101 - the command always sets one
        return self._options.budget

    @staticmethod
    def _beside(one: Planned, first: Planned) -> bool:
        """Whether a case can share the round of the first one."""
        same = groups.name(one.case) == groups.name(first.case)
        return same and _condition(one) == _condition(first) and features.is_whole(one.case)

    def _expected(self, case: Case) -> float:
        """The seconds that a case is likely to take: as others of its mode, or of all modes."""
        costs = self._costs.get(case.mode) or [cost for one in self._costs.values() for cost in one]
        return sum(costs) / len(costs) if costs else FIRST_CASE

    def _conductor(self, batch: Batch) -> Conductor:
        """The conductor of a condition. A case that fails on purpose has its own, whose device may then be lost."""
        key = _condition(batch.planned[0])
        if not features.is_whole(batch.planned[0].case):
            key = batch.planned[0].case.uid
        if key not in self._conductors:
            options = dataclasses.replace(batch.options, budget=max(1.0, self._budget - self.seconds))
            self._conductors[key] = Conductor(options, Path.cwd(), self._say, policy=ANYTHING, punctual=True)
        return self._conductors[key]

    def _play(self, batch: Batch, recorder: Recorder) -> None:
        begin = time.monotonic()
        run = GroupRun(
            GroupRequest(batch.group, 1), self._conductor(batch), self._say, effort=EFFORT, ratios_alone=True
        )
        try:
            run.prepare()
            run.advance()
        except UsageError as error:
            self.refused.update({one.case.uid: str(error) for one in batch.planned})
            return
        finally:
            # Also after an interruption, and before the history, which may fail.
            measurements = [one for one in run.measurements().values() if one.launches]
            self._keep(measurements, run.rounds)
            for one in measurements:
                recorder.case(one, _judged(one), POLICY)
            run.hand_over(recorder.round)
        cost = (time.monotonic() - begin) / len(batch.planned)
        for planned in batch.planned:
            self._costs.setdefault(planned.case.mode, []).append(cost)

    def _keep(self, measurements: Sequence[Measurement], rounds: Sequence[RoundRecord]) -> None:
        verdicts = {one.case.uid: _judged(one) for one in measurements}
        speeds = Speeds.of(measurements, verdicts, rounds)
        reference = groups.reference([one.case for one in measurements]) if measurements else None
        for one in measurements:
            self._look(one.environment)
            self.records.append(record(one, reference, speeds))

    def _look(self, environment: Mapping[str, Any]) -> None:
        """Keep the first environment that a worker has described, and the software of all."""
        software = environment["software"]
        if software.get("torch"):
            if not self.software:
                self.environment = dict(environment)
            self.software.update({name: value for name, value in software.items() if value is not None})
        self.environment.setdefault("hardware", environment["hardware"])

    def _again(self, batch: Batch) -> Iterator[Planned]:
        """For each case that failed, the cases with fewer of its settings that nobody has run or planned."""
        known = {*(one.case for one in self.records), *(one.case for one in self._waiting)}
        sound = {one.case for one in self.records if one.sound}
        for planned in batch.planned:
            if planned.case not in sound and features.is_whole(planned.case):
                more = [one for one in self._planner.alone(planned) if one.case not in known]
                known |= {one.case for one in more}
                yield from more


def _condition(one: Planned) -> str:
    """The condition of a case's workers: cases of one condition share a conductor."""
    return f"{one.options.placement or ''} {one.options.start}"


def _judged(measured: Measurement) -> Verdict:
    return screen.judge(measured, None, POLICY)


def record(measured: Measurement, reference: Case | None, speeds: Speeds) -> CaseRecord:
    """What a measurement of one launch proves."""
    launch = measured.launches[-1]
    metrics = {name: launch.metrics[name] for name in accuracies() if name in launch.metrics}
    return CaseRecord(
        measured.case,
        launch.outcome,
        "" if launch.outcome == OK else launch.reason,
        launch.emulated,
        launch.proof,
        launch.accuracy,
        metrics,
        (launch.fingerprint or {}).get("digest"),
        _busy(launch),
        _speed(measured.case, reference, speeds),
        () if launch.outcome == OK else tuple(launch.log.splitlines()[-LOG_LINES:]),
    )


def _busy(launch: Launch) -> str:
    """What disturbed the launch: its times say less then, and its proof says as much."""
    return gate.contended(launch.gate, gate.POLICY)


def _speed(case: Case, reference: Case | None, speeds: Speeds) -> Speed | None:
    """The ratio to the plainest case of the round, if it has an interval."""
    if reference is None or reference == case:
        return None
    compared = speeds.compare(reference, case)
    if compared is None or compared.ratio.lo is None or compared.ratio.hi is None:
        return None
    return Speed(reference.uid, compared.ratio.ratio, compared.ratio.lo, compared.ratio.hi)
