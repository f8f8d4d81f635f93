"""Measure what a migration compares: one round of every contest, then a second one of each, until the budget ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ipexperf.compare.group import GroupRun
from ipexperf.judge import screen
from ipexperf.judge.policy import Policy

if TYPE_CHECKING:
    from ipexperf.compare.round import Effort
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.plan.arms import ArmWords
    from ipexperf.plan.groups import Group
    from ipexperf.recorder import Recorder
    from ipexperf.result import Measurement, RoundRecord, Verdict

POLICY = Policy()
"""Migrations are compared with no baseline: the policy only says what is failed or invalid."""


class Experiment:
    """The rounds of all contests. Results so far can be read at any time, also after an interruption."""

    def __init__(
        self,
        contests: Sequence[Group],
        launches: int,
        software: Mapping[str, ArmWords],
        conductor: Conductor,
        say: Callable[[str], None],
        effort: Effort | None = None,
    ) -> None:
        """Plan the rounds. `software` has the interpreter and variables of each stack."""
        self.rounds: list[RoundRecord] = []
        self._runs = [
            GroupRun(contest, launches, conductor, say, software=software, effort=effort) for contest in contests
        ]

    def run(self, recorder: Recorder) -> None:
        """Make one round of each contest in turn, so that the budget is spent on breadth before precision."""
        live = list(self._runs)
        for one in live:
            one.prepare()
            self._advance(one, recorder)
        while live:
            live = [one for one in live if self._advance(one, recorder)]

    def _advance(self, one: GroupRun, recorder: Recorder) -> bool:
        more = one.advance()
        if more:
            recorder.so_far(
                lambda: ((measured, judged(measured), POLICY) for measured in one.measurements().values()),
                lambda: self._hand_over(one, recorder),
            )
        return more

    def finish(self, recorder: Recorder, cut: str = "") -> list[Measurement]:
        """Record every case in its final state. `cut` is the reason for cases that still miss launches."""
        measurements = [measured for one in self._runs for measured in one.measurements(cut).values()]
        for measured in measurements:
            if measured.launches:
                recorder.case(measured, judged(measured), POLICY)
        for one in self._runs:
            self._hand_over(one, recorder)
        return measurements

    def _hand_over(self, one: GroupRun, recorder: Recorder) -> None:
        def keep(record: RoundRecord) -> None:
            recorder.round(record)
            self.rounds.append(record)

        one.hand_over(keep)


def judged(measured: Measurement) -> Verdict:
    """Whether the numbers of a case count."""
    return screen.judge(measured, None, POLICY)
