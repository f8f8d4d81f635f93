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
from ipexperf.plan import groups
from ipexperf.plan.groups import Group
from ipexperf.report.speeds import Speeds
from ipexperf.result import accuracies
from ipexperf.tools.evidence import features
from ipexperf.tools.evidence.records import OK, CaseRecord, Speed

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.plan.options import Options
    from ipexperf.recorder import Recorder
    from ipexperf.result import Launch, Measurement, RoundRecord, Verdict
    from ipexperf.tools.evidence.cover import CoveringCase, Planner

POLICY = Policy()
"""Cases have no baseline here: the policy only tells which ones failed or are invalid."""
ARMS = 4
"""The most cases of a round: few, so that an interruption, or the end of the budget, costs little."""
EFFORT = Effort(turns=3, most=3, seconds=0.02)
"""Short rounds: the proof counts. The interval of a ratio shows how short they were."""
ANYTHING = GatePolicy(others=1.0, steal=1.0, held_up=1.0, memory_pressure=1.0)
"""Never repeat a turn because the machine is busy: a proof is as good there. The record says that it was busy."""
LOG_LINES = 40
"""The number of lines to keep of a failed launch's log."""
FIRST_CASE = 15.0
"""The expected seconds of a case before any has run."""


@dataclasses.dataclass(frozen=True, slots=True)
class Batch:
    """Cases that share a round, with the options of their conductor."""

    planned: tuple[CoveringCase, ...]

    @property
    def options(self) -> Options:
        return self.planned[0].options

    @property
    def group(self) -> Group:
        cases = tuple(planned.case for planned in self.planned)
        return Group(groups.name(cases[0]), cases)


class EvidenceRun:
    """Runs batches until all are done or the budget is spent. Results so far can be read at any time."""

    def __init__(
        self,
        planner: Planner,
        planned: Sequence[CoveringCase],
        options: Options,
        say: Callable[[str], None],
    ) -> None:
        self.records: list[CaseRecord] = []
        self.refused: dict[str, str] = {}
        """Why cases could not be launched at all, by uid: a library is missing, for one."""
        self.environment: dict[str, Any] = {}
        """The environment of the first case that described it."""
        self.software: dict[str, Any] = {}
        """The software of all cases together: each stack imports its own."""
        self._planner = planner
        self._waiting = list(planned)
        self._options = options
        self._say = say
        self._began = time.monotonic()
        self._conductors: dict[str, Conductor] = {}
        self._costs: dict[str, list[float]] = {}
        """The seconds that cases took, by mode."""

    @property
    def seconds(self) -> float:
        """The seconds since it began."""
        return time.monotonic() - self._began

    @property
    def left(self) -> list[Case]:
        """The cases that have not run."""
        return [planned.case for planned in self._waiting]

    def run(self, recorder: Recorder, after: Callable[[], None] = lambda: None) -> None:
        """Run batch after batch. Call `after` after each, for instance to move a progress bar."""
        while self._waiting and (batch := self._next()) is not None:
            self._play(batch, recorder)
            self._waiting = [planned for planned in self._waiting if planned not in batch.planned]
            self._waiting = [*self._again(batch), *self._waiting]
            after()

    def close(self) -> None:
        for conductor in self._conductors.values():
            conductor.close()

    def _next(self) -> Batch | None:
        """Return the next batch that likely ends within the budget: a waiting case, with others comparable to it."""
        for first in self._waiting:
            sound_network = features.is_whole(first.case)
            comparable = (
                [planned for planned in self._waiting if self._beside(planned, first)] if sound_network else [first]
            )
            for count in range(min(len(comparable), ARMS), 0, -1):
                if sum(self._expected(planned.case) for planned in comparable[:count]) <= self._budget - self.seconds:
                    return Batch(tuple(comparable[:count]))
        return None

    @property
    def _budget(self) -> float:
        assert self._options.budget is not None  # noqa: S101 - the command always sets one
        return self._options.budget

    @staticmethod
    def _beside(planned: CoveringCase, first: CoveringCase) -> bool:
        """Return True if a case can share the round of the first one."""
        same = groups.name(planned.case) == groups.name(first.case)
        return same and _condition(planned) == _condition(first) and features.is_whole(planned.case)

    def _expected(self, case: Case) -> float:
        """Return the expected seconds of a case: the mean of its mode, or else of all modes."""
        costs = self._costs.get(case.mode) or [cost for seconds in self._costs.values() for cost in seconds]
        return sum(costs) / len(costs) if costs else FIRST_CASE

    def _conductor(self, batch: Batch) -> Conductor:
        """Return the conductor for a batch. A case that fails on purpose gets its own: it may lose the device."""
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
            self.refused.update({planned.case.uid: str(error) for planned in batch.planned})
            return
        finally:
            # Also after an interruption, and before anything is written to the history, which may fail.
            measurements = [measurement for measurement in run.measurements().values() if measurement.launches]
            self._keep(measurements, run.rounds)
            for measurement in measurements:
                recorder.case(measurement, _judged(measurement), POLICY)
            run.hand_over(recorder.round)
        cost = (time.monotonic() - begin) / len(batch.planned)
        for planned in batch.planned:
            self._costs.setdefault(planned.case.mode, []).append(cost)

    def _keep(self, measurements: Sequence[Measurement], rounds: Sequence[RoundRecord]) -> None:
        verdicts = {measurement.case.uid: _judged(measurement) for measurement in measurements}
        speeds = Speeds.of(measurements, verdicts, rounds)
        reference = groups.reference([measurement.case for measurement in measurements]) if measurements else None
        for measurement in measurements:
            self._keep_environment(measurement.environment)
            self.records.append(record(measurement, reference, speeds))

    def _keep_environment(self, environment: Mapping[str, Any]) -> None:
        """Keep the first environment that a worker has described, and add its software to that of the others."""
        software = environment["software"]
        if software.get("torch"):
            if not self.software:
                self.environment = dict(environment)
            self.software.update({name: value for name, value in software.items() if value is not None})
        self.environment.setdefault("hardware", environment["hardware"])

    def _again(self, batch: Batch) -> Iterator[CoveringCase]:
        """Yield new cases for each case that failed: those with fewer of its settings."""
        tried_or_waiting = {*(record.case for record in self.records), *(record.case for record in self._waiting)}
        sound = {record.case for record in self.records if record.sound}
        for planned in batch.planned:
            if planned.case not in sound and features.is_whole(planned.case):
                simpler = [case for case in self._planner.alone(planned) if case.case not in tried_or_waiting]
                tried_or_waiting |= {case.case for case in simpler}
                yield from simpler


def _condition(planned: CoveringCase) -> str:
    """Return the placement of a case's workers. Cases that agree in it share a conductor."""
    return str(planned.options.placement or "")


def _judged(measurement: Measurement) -> Verdict:
    return screen.judge(measurement, None, POLICY)


def record(measurement: Measurement, reference: Case | None, speeds: Speeds) -> CaseRecord:
    """Make the record of a case of its measurement, which has one launch."""
    launch = measurement.launches[-1]
    metrics = {name: launch.metrics[name] for name in accuracies() if name in launch.metrics}
    return CaseRecord(
        measurement.case,
        launch.outcome,
        "" if launch.outcome == OK else launch.reason,
        launch.emulated,
        launch.proof,
        launch.accuracy,
        metrics,
        (launch.fingerprint or {}).get("digest"),
        _busy(launch),
        _speed(measurement.case, reference, speeds),
        () if launch.outcome == OK else tuple(launch.log.splitlines()[-LOG_LINES:]),
    )


def _busy(launch: Launch) -> str:
    """Return what disturbed the launch, or an empty text. Its times are then less certain; its proof counts as much."""
    return gate.contended(launch.gate, gate.POLICY)


def _speed(case: Case, reference: Case | None, speeds: Speeds) -> Speed | None:
    """Return the speed relative to the plainest case of the round, or None if it has no interval."""
    if reference is None or reference == case:
        return None
    compared = speeds.compare(reference, case)
    if compared is None or compared.ratio.lo is None or compared.ratio.hi is None:
        return None
    return Speed(reference.uid, compared.ratio.ratio, compared.ratio.lo, compared.ratio.hi)
