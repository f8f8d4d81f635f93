"""Measure candidates in turns with the good end, and turn ratios into answers."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ipexperf.case import Case
from ipexperf.commands.progress import Progress
from ipexperf.compare.against import PairPlan, PairRun
from ipexperf.compare.rounds import Schedule
from ipexperf.compare.sequence import Comparison, Why
from ipexperf.conduct import process
from ipexperf.conduct.conductor import Conductor
from ipexperf.errors import LockError, UsageError
from ipexperf.judge.bisection import Answer
from ipexperf.judge.policy import PairPolicy
from ipexperf.judge.sentence import sentence
from ipexperf.plan.arms import ArmSpec
from ipexperf.plan.gates import AS_ALL
from ipexperf.proof import structure
from ipexperf.tools.bisect.answers import AnswerLog, Measured
from ipexperf.tools.bisect.software import Installed, Software
from ipexperf.verdict import Verdict

SHARE = 0.85
"""The tolerance of a candidate, as a share of the slowdown of the bad end that is certain."""
SURE = 0.8
"""If less than this share of the ends' difference is certain, they are measured once more."""
ANSWERS = {"regressed": Answer.BAD, "ok": Answer.GOOD, "improved": Answer.GOOD, "inconclusive": Answer.UNSURE}
"""The answer for each verdict. Any other verdict is a skip: the candidate did not run as it should."""


@dataclass(slots=True)
class Laboratory:
    """Measures candidates against the good end. The software of the good end stays ready until `close`."""

    case: Case
    good: Software
    cache: Path
    conductor: Conductor
    policy: PairPolicy
    progress: Progress
    log: AnswerLog
    walk: Callable[[ArmSpec, ArmSpec], contextlib.AbstractContextManager[Schedule]] | None = None
    """Has both ends of a comparison go through the session of pytest, or run the program, that has the case."""
    _bad: Software | None = None
    """The bad end, once its slowdown sets the tolerance of candidates."""
    _for_candidates: PairPolicy = field(init=False)
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _good_arm: ArmSpec | None = None

    def __post_init__(self) -> None:
        self._for_candidates = self.policy

    def close(self) -> None:
        """Take down the good end."""
        self._good_arm = None
        self._open.close()

    def bad_end(self, bad: Software) -> Measured:
        """Measure how much slower the bad end is, by which candidates are judged from then on.

        Once more, unless the rounds tell it well enough: those that ended early because the difference looked large
        overestimate it. By a tolerance that is too large, a candidate as slow as the bad end looks good. So then the
        number of rounds is fixed beforehand.
        """
        ends = self._asked(f"clock {self.policy.tolerance:.6f} {bad.key}", bad, self.policy)
        if ends.answer is not Answer.BAD or ends.ratio is None or ends.lo is None:
            return ends
        if ends.lo - 1 < SURE * (ends.ratio.value - 1):
            pairs, policy = self.policy.max_pairs, self.policy
            fixed = dataclasses.replace(
                policy, looks=(pairs,), levels=policy.levels[-1:], ok_levels=policy.ok_levels[-1:], max_pairs=pairs
            )
            ends = self._asked(f"size {pairs} {bad.key}", bad, fixed)
            if ends.answer is not Answer.BAD:
                return dataclasses.replace(ends, answer=Answer.UNSURE, reason=f"the second time: {ends.reason}")
        self._bad = bad
        self._judge_by(ends)
        return ends

    def _judge_by(self, ends: Measured) -> None:
        """Set the tolerance so that slow means nearer to the bad end than to the good one.

        A slowdown is regressed if it surely exceeds 0.4 of the tolerance, and ok if it surely stays below the
        tolerance: the two sides of half the difference.
        """
        if ends.lo is not None and ends.lo > 1:
            self._for_candidates = dataclasses.replace(self.policy, tolerance=min(SHARE * (ends.lo - 1), 0.9))

    def timed(self, candidate: Software) -> Measured:
        """Ask the clock: rounds of the good end against the candidate until the judge is sure.

        A candidate between both ends may be as slow as the bad end is by now, because how much slower code is depends
        on the state of its machine. So the bad end is measured again.
        """
        policy = self._for_candidates
        key = f"clock {policy.tolerance:.6f} {candidate.key}"
        measured = self._asked(key, candidate, policy)
        slower = measured.lo is not None and math.log(measured.lo) > self.policy.margin
        if self._bad is None or not slower or measured.answer not in (Answer.GOOD, Answer.UNSURE):
            return measured
        self.progress.say("  slower than the good end, and not as slow as the bad end was: is that as slow as before?")
        bad = self._asked(f"again {key}", self._bad, self.policy)
        self.progress.say(f"    the bad end: {bad.reason}")
        if bad.answer is not Answer.BAD or bad.lo is None or SHARE * (bad.lo - 1) > SURE * policy.tolerance:
            return measured
        self._judge_by(bad)
        return self.timed(candidate)

    def _asked(self, key: str, software: Software, policy: PairPolicy) -> Measured:
        """The answer of an earlier try, or a new one, which is kept."""
        if (earlier := self.log.get(key)) is not None:
            self.progress.say("  known from an earlier try:")
            return earlier
        measured = self._measure(software, policy)
        self.log.put(key, measured)
        return measured

    def _measure(self, candidate: Software, policy: PairPolicy) -> Measured:
        """Compare a candidate with the good end. A candidate that cannot be installed is a skip."""
        self.conductor.reserve([self.case])  # before a build, which disturbs others as much as a measurement does
        good = self._good_end()
        with contextlib.ExitStack() as stack:
            try:
                installed = stack.enter_context(candidate.ready(self.cache, self.progress.say))
            except LockError as error:
                return Measured(Answer.SKIP, str(error))
            own = self._arm(candidate, installed)
            against = PairPlan(
                good, "--good", {self.case: self.case}, policy, own=own, names=("the good end", "the candidate")
            )
            return self._compared(against)

    def _good_end(self) -> ArmSpec:
        if self._good_arm is None:
            try:
                installed = self._open.enter_context(self.good.ready(self.cache, self.progress.say))
            except LockError as error:
                raise UsageError(f"the good end cannot be measured: {error}") from error
            self._good_arm = self._arm(self.good, installed)
        return self._good_arm

    def _arm(self, software: Software, installed: Installed) -> ArmSpec:
        lock = software.lock(self.cache)
        text = f"lock:{lock.digest}" if lock else software.key
        unset = dict.fromkeys(process.tuned_by_user(os.environ), process.UNSET)
        return ArmSpec(text, installed.python, variables={**unset, **dict(installed.variables)})

    def _compared(self, against: PairPlan) -> Measured:
        """Measure the rounds. They are not recorded: the software of a candidate is in no series."""
        with self.walk(against.words, against.own) if self.walk else contextlib.nullcontext() as walk:
            rounds = PairRun(against, [(self.case, AS_ALL)], self.conductor, self.progress.say, walk=walk)
            for _ in rounds.play():
                """The answer comes from all of them."""
        measurement, verdict, _ = rounds.judged()[self.case]
        measured = _answered(rounds.comparisons().get(self.case), verdict)
        if self._bad is not None:
            measured = in_doubt(measured, against.policy.margin)
        return dataclasses.replace(measured, machine=str(measurement.environment.get("machine_key", "")))


def in_doubt(measured: Measured, harmless: float) -> Measured:
    """Make a good answer unsure if the candidate is surely slower than the good end, though not as slow as the bad one.

    `harmless` is the slowdown, as a log ratio, up to which a candidate counts as equally fast.
    """
    if measured.answer is not Answer.GOOD or measured.lo is None or math.log(measured.lo) <= harmless:
        return measured
    reason = f"slower than the good end, and not as slow as the bad one: {measured.reason}"
    return dataclasses.replace(measured, answer=Answer.UNSURE, reason=reason)


def _answered(comparison: Comparison | None, verdict: Verdict) -> Measured:
    """Turn a comparison into the answer of its candidate."""
    if comparison is None or comparison.failure is not None:
        fault = comparison.failure if comparison else None
        if fault is not None and comparison is not None and fault.arm is comparison.a:
            raise UsageError(f"the good end does not run the case: {fault.error.reason}")
        return Measured(Answer.SKIP, f"it does not run: {sentence(verdict)}")
    if comparison.stop.why is Why.ABSENT:
        return Measured(Answer.SKIP, comparison.stop.text)
    ran: Sequence[str] = structure.between(*comparison.fingerprints).changes if comparison.pairs else ()
    answer = ANSWERS.get(verdict.outcome, Answer.SKIP)
    return Measured(answer, sentence(verdict), verdict.ratio, tuple(ran))
