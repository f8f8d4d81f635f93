"""Measure a migration: a round of every contest, then the accuracy of trainings, then more rounds.

To train to the end takes minutes, a round of a training takes seconds. So the times of all rows come before the
accuracy of the first training: a page with every ratio and half of the accuracies says more than half of the rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ipexperf.bench import registry
from ipexperf.compare.group import GroupRun
from ipexperf.compare.request import GroupRequest
from ipexperf.report import units
from ipexperf.tools.experiments import POLICY, judged

if TYPE_CHECKING:
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.plan.arms import ArmWords
    from ipexperf.recorder import Recorder
    from ipexperf.result import Measurement, RoundRecord
    from ipexperf.tools.migrate.plan import MigrationPlan


class Experiment:
    """The rounds of all contests. Results so far can be read at any time, also after an interruption."""

    def __init__(
        self,
        plan: MigrationPlan,
        launches: int,
        software: Mapping[str, ArmWords],
        conductor: Conductor,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Plan the rounds. `software` has the interpreter and variables of each stack."""
        self._conductor = conductor
        self._clock = clock
        self._costs: dict[int, float] = {}
        """The seconds that the first round of each contest took, by its place."""
        self._postpones = launches > 1
        """Whether the accuracy of a training waits for the second round."""
        self._runs = [
            GroupRun(
                GroupRequest(contest, launches),
                conductor,
                say,
                software=software,
                ratios_alone=True,
                timed_alone=[setting.off for setting in plan.settings],  # which shows the effect of the setting
            )
            for contest in plan.contests
        ]

    def run(self, recorder: Recorder) -> None:
        """Make one round of each contest, then train those to the end that are trainings, then make more rounds."""
        trainings = [contest for contest in self._runs if self._postpones and _trains(contest)]
        for contest in self._runs:
            if self._affordable(contest):
                contest.prepare()
                self._advance(contest, recorder, accuracy=contest not in trainings)
        for contest in trainings:
            if 0 < contest.training_left <= self._conductor.left() - self._expected(contest):
                self._advance(contest, recorder)
        live = self._runs
        while live:
            live = [
                contest
                for contest in live
                if self._affordable(contest) and self._advance(contest, recorder, accuracy=contest not in trainings)
            ]

    def _affordable(self, contest: GroupRun) -> bool:
        """Return whether a round of a contest is likely to end within the budget. If not, end the contest."""
        expected = self._expected(contest)
        if expected <= self._conductor.left():
            return True
        contest.give_up(f"a round takes about {units.seconds(expected)}, and the budget has less left")
        return False

    def _expected(self, contest: GroupRun) -> float:
        """Estimate the seconds of a round from the contest's first one, or from others of its kind by number of cases.

        0 if there are none. Postponed accuracy of trainings is not included.
        """
        place = self._runs.index(contest)
        if place in self._costs:
            return self._costs[place]
        alike = [other for other in self._costs if _trains(self._runs[other]) == _trains(contest)] or list(self._costs)
        arms = sum(len(self._runs[other].group.cases) for other in alike)
        return sum(self._costs[other] for other in alike) / arms * len(contest.group.cases) if arms else 0.0

    def _advance(self, contest: GroupRun, recorder: Recorder, *, accuracy: bool = True) -> bool:
        began = self._clock()
        more = contest.advance(accuracy=accuracy)
        if more:
            self._costs.setdefault(self._runs.index(contest), self._clock() - began)
            recorder.so_far(
                lambda: ((measured, judged(measured), POLICY) for measured in contest.measurements().values()),
                lambda: contest.rounds,
            )
        return more

    def finish(self, recorder: Recorder, cut: str = "") -> list[Measurement]:
        """Record every case in its final state. `cut` is the reason for cases that still miss launches."""
        if cut:
            for contest in self._runs:
                contest.give_up(cut)
        measurements = [measured for contest in self._runs for measured in contest.measurements(cut).values()]
        for measured in measurements:
            if measured.launches:
                recorder.case(measured, judged(measured), POLICY)
        recorder.add_rounds(self.rounds)
        return measurements

    @property
    def rounds(self) -> list[RoundRecord]:
        return [record for contest in self._runs for record in contest.rounds]


def _trains(contest: GroupRun) -> bool:
    return registry.modes.get(contest.group.cases[0].mode).trains
