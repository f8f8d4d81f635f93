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
from ipexperf.judge.policy import GatePolicy
from ipexperf.plan import groups
from ipexperf.plan.groups import Group
from ipexperf.report.speeds import Speeds
from ipexperf.result import accuracies
from ipexperf.tools.evidence import features
from ipexperf.tools.evidence.records import OK, CaseRecord, Speed
from ipexperf.tools.experiments import POLICY, judged

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.plan.options import Options
    from ipexperf.recorder import Recorder
    from ipexperf.result import Measurement, RoundRecord
    from ipexperf.tools.evidence.cover import CoveringCase, Planner

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
        while batch := self._next():
            self._play(batch, recorder)
            self._waiting = [planned for planned in self._waiting if planned not in batch]
            self._waiting = [*self._again(batch), *self._waiting]
            after()

    def close(self) -> None:
        for conductor in self._conductors.values():
            conductor.close()

    def _next(self) -> list[CoveringCase]:
        """Return the next batch that likely ends within the budget: a waiting case, with others comparable to it.

        Its cases share a round. It is empty if none does.
        """
        for first in self._waiting:
            sound_network = features.is_whole(first.case)
            comparable = (
                [planned for planned in self._waiting if self._beside(planned, first)] if sound_network else [first]
            )
            for count in range(min(len(comparable), ARMS), 0, -1):
                if sum(self._expected(planned.case) for planned in comparable[:count]) <= self._budget - self.seconds:
                    return comparable[:count]
        return []

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

    def _conductor(self, first: CoveringCase) -> Conductor:
        """Return the conductor of a batch. A case that fails on purpose gets its own: it may lose the device."""
        key = _condition(first) if features.is_whole(first.case) else first.case.uid
        if key not in self._conductors:
            options = dataclasses.replace(first.options, budget=max(1.0, self._budget - self.seconds))
            self._conductors[key] = Conductor(options, Path.cwd(), self._say, policy=ANYTHING, punctual=True)
        return self._conductors[key]

    def _play(self, batch: Sequence[CoveringCase], recorder: Recorder) -> None:
        begin = time.monotonic()
        group = Group(groups.name(batch[0].case), tuple(planned.case for planned in batch))
        conductor = self._conductor(batch[0])
        run = GroupRun(GroupRequest(group, 1), conductor, self._say, effort=EFFORT, ratios_alone=True)
        try:
            run.prepare()
            run.advance()
        except UsageError as error:
            self.refused.update({planned.case.uid: str(error) for planned in batch})
            return
        finally:
            # Also after an interruption, and before anything is written to the history, which may fail.
            measurements = [measurement for measurement in run.measurements().values() if measurement.launches]
            self._keep(measurements, run.rounds)
            for measurement in measurements:
                recorder.case(measurement, judged(measurement), POLICY)
            recorder.add_rounds(run.rounds)
        cost = (time.monotonic() - begin) / len(batch)
        for planned in batch:
            self._costs.setdefault(planned.case.mode, []).append(cost)

    def _keep(self, measurements: Sequence[Measurement], rounds: Sequence[RoundRecord]) -> None:
        verdicts = {measurement.case.uid: judged(measurement) for measurement in measurements}
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

    def _again(self, batch: Sequence[CoveringCase]) -> Iterator[CoveringCase]:
        """Yield new cases for each case that failed: those with fewer of its settings."""
        tried_or_waiting = {*(record.case for record in self.records), *(record.case for record in self._waiting)}
        sound = {record.case for record in self.records if record.sound}
        for planned in batch:
            if planned.case not in sound and features.is_whole(planned.case):
                simpler = [case for case in self._planner.alone(planned) if case.case not in tried_or_waiting]
                tried_or_waiting |= {case.case for case in simpler}
                yield from simpler


def _condition(planned: CoveringCase) -> str:
    """Return the placement of a case's workers. Cases that agree in it share a conductor."""
    return str(planned.options.placement or "")


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
        gate.contended(launch.gate, gate.POLICY),
        _speed(measurement.case, reference, speeds),
        () if launch.outcome == OK else tuple(launch.log.splitlines()[-LOG_LINES:]),
    )


def _speed(case: Case, reference: Case | None, speeds: Speeds) -> Speed | None:
    """Return the speed relative to the plainest case of the round, or None if it has no interval."""
    if reference is None or reference == case:
        return None
    compared = speeds.compare(reference, case)
    if compared is None or compared.ratio.lo is None or compared.ratio.hi is None:
        return None
    return Speed(reference.uid, compared.ratio.ratio, compared.ratio.lo, compared.ratio.hi)
