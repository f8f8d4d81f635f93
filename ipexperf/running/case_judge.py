"""Who judges the cases of a run, asks for second looks, and has each recorded."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ipexperf import live_baseline
from ipexperf.case import NetworkCase
from ipexperf.conduct import interrupts
from ipexperf.judge import remeasure
from ipexperf.plan import gates
from ipexperf.plan.gates import AS_ALL, GateWish
from ipexperf.report.summary import Judged
from ipexperf.result import PRIMARY, Measurement
from ipexperf.running.baselines import RunBaselines
from ipexperf.verdict import Verdict

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.compare.against import FirstArmResults
    from ipexperf.compare.group import GroupRun
    from ipexperf.judge.policy import Constants
    from ipexperf.judge.run import RunVerdict
    from ipexperf.live_baseline import OtherArms
    from ipexperf.plan.options import Options
    from ipexperf.recorder import Recorder

Result = tuple[Measurement, Verdict, "Constants"]
"""A case with its verdict, and the policy by which it was judged."""


@dataclasses.dataclass(frozen=True, slots=True)
class Postponed:
    """A case that must be measured again after all others, with what there is of it."""

    measurement: Measurement
    verdict: Verdict
    looks: str = ""
    """What it looks like, such as `slower`, if that is why. An empty text: the machine was busy."""


class CaseJudge:
    """Judges each case of a run by its baseline, or by what its rounds beside another arm say."""

    def __init__(self, options: Options, cases: Sequence[Case], arms: OtherArms, recorder: Recorder) -> None:
        self.options = options
        self.arms = arms
        self.recorder = recorder
        self.baselines = RunBaselines(options, cases)
        self.wishes: dict[Case, GateWish] = {}
        """How the test of each case wants it judged."""
        self.postponed: dict[Case, Postponed] = {}
        self.finished: list[Judged] = []

    def gate(self, case: Case) -> tuple[str, ...]:
        """The metrics that a case is judged by."""
        wished = self.wishes.get(case, AS_ALL).gate
        return gates.gate(self.options) if wished is None else wished

    def differs(self, case: Case, wish: GateWish) -> bool:
        """Whether a case is judged by another wish than this. A tolerance only matters in pairs."""
        before = self.wishes.get(case, wish)
        return before.gate != wish.gate or (self.arms.of(case) is not None and before.tolerance != wish.tolerance)

    def judge(self, case: Case, measurement: Measurement, *, last: bool) -> Judged | Postponed:
        """Judge a case by stored numbers and record it. Return Postponed if it must be measured again.

        `last`: it was measured again already because the machine was busy.
        """
        gate = self.gate(case)
        gated = PRIMARY in gate
        verdict = self.baselines.judge(measurement, gate)
        if (first := self.postponed.pop(case, None)) is not None:
            measurement = remeasure.merged(first.measurement, measurement)
            both = self.baselines.judge(measurement, gate)
            verdict = remeasure.settle(first.verdict, verdict, both, gated=gated)
        elif verdict.contended and not last and not measurement.cut:
            return self._postpone(case, Postponed(measurement, verdict))
        elif verdict.outcome == "regressed":
            slower = gated and verdict.alone.outcome == "regressed"
            looks = "slower" if slower else f"worse in {verdict.worse}"
            return self._postpone(case, Postponed(measurement, verdict, looks))
        return self._record(self._result(measurement, verdict))

    def _postpone(self, case: Case, postponed: Postponed) -> Postponed:
        with interrupts.deferred():
            self.recorder.case(*self._without_second_look(case, postponed))
            self.postponed[case] = postponed
        return postponed

    def _without_second_look(self, case: Case, postponed: Postponed) -> Result:
        """What is known of a postponed case by now. None counts as regressed."""
        verdict = postponed.verdict
        if postponed.looks:
            verdict = remeasure.without_second(verdict, gated=PRIMARY in self.gate(case))
        return self._result(postponed.measurement, verdict)

    def taken_on_busy_machine(self, cases: Sequence[Case]) -> dict[Case, Measurement]:
        """The measurements of those of these cases that a busy machine disturbed. They are no longer postponed."""
        busy = [case for case in cases if case in self.postponed and not self.postponed[case].looks]
        return {case: self.postponed.pop(case).measurement for case in busy}

    def so_far(self, rounds: GroupRun, cut: str) -> Iterator[Result]:
        """What a group has so far. A case that is measured again keeps its first result until the run ends.

        `cut` is the reason for cases that still miss launches.
        """
        for case, measurement in rounds.measurements(cut).items():
            if measurement.launches and case not in self.postponed:
                gate = self.gate(case)
                verdict = remeasure.provisional(self.baselines.judge(measurement, gate), gated=PRIMARY in gate)
                yield self._result(measurement, verdict)

    def give_up(self, others: Mapping[Case, FirstArmResults]) -> tuple[Case, ...]:
        """The cases that the software of their baseline cannot run, to be judged by stored numbers instead.

        None if the user asked for another arm or a live baseline: then that is a failure.
        """
        if self.options.arm is not None:
            return ()
        unable = {case: other.unable for case, other in others.items() if other.unable}
        for case, reason in unable.items():
            self.arms.give_up(case, reason)
        return tuple(unable)

    def finish_pairs(self, result: Result, other: FirstArmResults | None) -> Judged:
        """Record a case that was compared, with how the baseline's software compares with its stored numbers.

        `other` are the results of that software, if the case was compared with it.
        """
        measurement, verdict, policy = result
        if other is not None and verdict.pairs is not None:
            accepted = self.baselines.accepted(measurement)
            watched = live_baseline.machine(other, accepted, self.baselines.policy(measurement))
            verdict = dataclasses.replace(verdict, evidence=dataclasses.replace(verdict.pairs, machine=watched))
        return self._record((measurement, verdict, policy))

    def record_interrupted(self, results: Iterable[Result]) -> None:
        """Record what the cases of an interrupted group have."""
        for result in results:
            if result[0].launches:
                self._record(result)

    def _record(self, result: Result) -> Judged:
        """Record a case that is finished, and add it to the results of the run."""
        measurement, verdict, policy = result
        with interrupts.deferred():
            self.recorder.case(measurement, verdict, policy)
            self.finished.append(Judged(measurement, verdict))
        return self.finished[-1]

    def _result(self, measurement: Measurement, verdict: Verdict) -> Result:
        """The measurement, its verdict with the structure check, and the policy it was judged by."""
        policy = self.baselines.policy(measurement)
        return measurement, self._with_structure(measurement, verdict), policy

    def _with_structure(self, measurement: Measurement, verdict: Verdict) -> Verdict:
        """Add to the verdict whether kernels and answers differ from those of the accepted baseline."""
        from ipexperf.judge.environment import incomparable
        from ipexperf.proof import answers, structure

        if measurement.failure or measurement.never_began:
            return verdict
        before = self.baselines.accepted(measurement)
        # Other hardware runs other kernels, and that is no loss.
        alike = before is not None and not incomparable(before.environment, measurement.environment)
        same = before if before is not None and before.case == measurement.case else None
        history = self.recorder.history
        compared = structure.judge(
            [launch.fingerprint for launch in measurement.counted],
            same.fingerprint if same else None,
            lambda: history.accepted_fingerprint(before) if history and before else None,
            known=same.work if same else {},
            gate=self.options.structure if alike else "warn",
        )
        if same is not None:
            now = answers.common(launch.answers for launch in measurement.counted)
            verdict = answers.named(verdict, answers.difference(same.answers, now))
        return dataclasses.replace(verdict, structure=compared)

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict of each finished case, by the uid of the case."""
        return {judged.case.uid: judged.verdict for judged in self.finished}

    def settled(self) -> RunVerdict:
        """The verdict on the run as a whole."""
        from ipexperf.judge.policy import Policy
        from ipexperf.judge.run import settle

        # A suite of functions beside another version may well become faster as a whole: in turns no machine did that.
        networks = {judged.case.uid for judged in self.finished if isinstance(judged.case, NetworkCase)}
        paired = {uid: verdict for uid, verdict in self.verdicts.items() if uid not in networks and verdict.pairs}
        others = {uid: verdict for uid, verdict in self.verdicts.items() if uid not in paired}
        return settle(others, Policy().for_run(), paired)

    def record_postponed(self) -> None:
        """Record the cases that should have been measured again, but the run ended."""
        while self.postponed:
            self._record(self._without_second_look(*self.postponed.popitem()))
