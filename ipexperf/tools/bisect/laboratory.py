"""Measure candidates in turns with the good end, and turn ratios and kernels into answers."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.compare.against import Against, AgainstRun
from ipexperf.compare.sequence import Why
from ipexperf.conduct import process
from ipexperf.errors import LockError, UsageError
from ipexperf.judge import structure
from ipexperf.judge.bisection import Answer
from ipexperf.plan.arms import ArmWords
from ipexperf.plan.gates import AS_ALL
from ipexperf.tools.bisect.answers import AnswerLog, Measured

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.commands.progress import Progress
    from ipexperf.compare.sequence import Comparison
    from ipexperf.compare.walk import Suite
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.history.store import Status
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.recorder import Recorder
    from ipexperf.result import Verdict
    from ipexperf.tools.bisect.software import Installed, Software

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
    recorder: Callable[[], Recorder]
    policy: PairPolicy
    progress: Progress
    log: AnswerLog
    chance: random.Random
    """Says which arm begins."""
    suite: Suite | None = None
    """The session of pytest that has the case, if that is a function."""
    kernels: tuple[str, str] | None = None
    """The digests of the fingerprints of the good and the bad end, if they differ."""
    _sized: bool = False
    """True once the slowdown of the bad end sets the tolerance of candidates."""
    _durations: list[float] = field(default_factory=list)
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _good_arm: ArmWords | None = None
    _bad: Software | None = None
    _plain: PairPolicy | None = None
    """The policy by which the bad end was found to be slower."""

    def close(self) -> None:
        """Take down the good end."""
        self._good_arm = None
        self._open.close()

    def timed(self, candidate: Software) -> Measured:
        """Ask the clock: rounds of the good end against the candidate until the judge is sure.

        A candidate between both ends may be as slow as the bad end is by now, because how much slower code is depends
        on the state of its machine. So the bad end is measured again.
        """
        key = f"clock {self.policy.tolerance:.6f} {candidate.key}"
        measured = self._earlier(key) or self._keep(key, self._measure(candidate, self.policy))
        if not self._between(measured) or self._bad is None or self._plain is None:
            return measured
        self.progress.say("  slower than the good end, and not as slow as the bad end was: is that as slow as before?")
        again = f"again {key}"
        bad = self._earlier(again) or self._keep(again, self._measure(self._bad, self._plain))
        self.progress.say(f"    the bad end: {bad.reason}")
        if bad.answer is not Answer.BAD or bad.lo is None or SHARE * (bad.lo - 1) > SURE * self.policy.tolerance:
            return measured
        self.judge_by(bad)
        return self.timed(candidate)

    def _between(self, measured: Measured) -> bool:
        """Whether a candidate that is not as slow as the bad end is surely slower than the good one all the same."""
        slower = measured.lo is not None and self._plain is not None and math.log(measured.lo) > self._plain.margin
        return slower and measured.answer in (Answer.GOOD, Answer.UNSURE)

    def sized(self, bad: Software, ends: Measured) -> Measured:
        """Return how much slower the bad end is. Measure it once more, unless `ends` tell it well enough.

        Rounds that ended early because the difference looked large overestimate it. By a tolerance that is too large, a
        candidate as slow as the bad end looks good. So here the number of rounds is fixed beforehand.
        """
        self._bad = bad
        if ends.ratio is None or ends.lo is None or ends.lo - 1 >= SURE * (ends.ratio - 1):
            return ends
        pairs, policy = self.policy.max_pairs, self.policy
        fixed_policy = dataclasses.replace(
            policy, looks=(pairs,), levels=policy.levels[-1:], ok_levels=policy.ok_levels[-1:], max_pairs=pairs
        )
        key = f"size {pairs} {bad.key}"
        remeasured = self._earlier(key) or self._keep(key, self._measure(bad, fixed_policy))
        if remeasured.answer is Answer.BAD:
            return remeasured
        return dataclasses.replace(remeasured, answer=Answer.UNSURE, reason=f"the second time: {remeasured.reason}")

    def quick(self, candidate: Software) -> Measured:
        """Answer by the kernels that run, in one pair. If they are those of neither end, ask the clock."""
        if self.kernels is None:
            return self.timed(candidate)
        key = f"kernels {'/'.join(self.kernels)} {candidate.key}"
        if (earlier := self._earlier(key)) is not None:
            return earlier
        measured = self._measure(candidate, dataclasses.replace(self.policy, max_pairs=1))
        if measured.kernels not in self.kernels:
            return (
                self._keep(key, measured)
                if measured.kernels is None and measured.answer is Answer.SKIP
                else self.timed(candidate)
            )
        bad = measured.kernels == self.kernels[1]
        reason = f"it runs the kernels of the {'bad' if bad else 'good'} end"
        answer = Answer.BAD if bad else Answer.GOOD
        return self._keep(key, dataclasses.replace(measured, answer=answer, reason=reason, clock=False))

    def judge_by(self, ends: Measured) -> None:
        """Set the tolerance so that slow means nearer to the bad end than to the good one. Keep both ends' kernels."""
        if ends.answer is Answer.BAD and ends.lo is not None and ends.lo > 1:
            # A slowdown is regressed if it surely exceeds 0.4 of the tolerance, and ok if it surely stays below the
            # tolerance: the two sides of half the difference.
            self._plain = self._plain or self.policy
            self.policy = dataclasses.replace(self.policy, tolerance=min(SHARE * (ends.lo - 1), 0.9))
            self._sized = True
        if ends.kernels is not None and ends.others is not None and ends.kernels != ends.others:
            self.kernels = (ends.others, ends.kernels)

    def seconds_each(self) -> float | None:
        """Return the median duration of a question, or None before the first."""
        return statistics.median(self._durations) if self._durations else None

    def _earlier(self, key: str) -> Measured | None:
        earlier = self.log.get(key)
        if earlier is not None:
            self.progress.say("  known from an earlier try:")
        return earlier

    def _keep(self, key: str, measured: Measured) -> Measured:
        self.log.put(key, measured)
        return measured

    def _measure(self, candidate: Software, policy: PairPolicy) -> Measured:
        """Compare a candidate with the good end. A candidate that cannot be installed is a skip."""
        self.conductor.reserve([self.case])  # before a build, which disturbs others as much as a measurement does
        began = time.monotonic()
        good = self._good_end()
        with contextlib.ExitStack() as stack:
            try:
                installed = stack.enter_context(candidate.ready(self.cache, self.progress.say))
            except LockError as error:
                return Measured(Answer.SKIP, str(error), seconds=time.monotonic() - began, lasting=False)
            own = self._arm(candidate, installed)
            against = Against(
                good, "--good", {self.case: self.case}, policy, own=own, names=("the good end", "the candidate")
            )
            return self._compared(against, began)

    def _good_end(self) -> ArmWords:
        if self._good_arm is None:
            try:
                installed = self._open.enter_context(self.good.ready(self.cache, self.progress.say))
            except LockError as error:
                raise UsageError(f"the good end cannot be measured: {error}") from error
            self._good_arm = self._arm(self.good, installed)
        return self._good_arm

    def _arm(self, software: Software, installed: Installed) -> ArmWords:
        lock = software.lock(self.cache)
        text = f"lock:{lock.digest}" if lock else software.key
        unset = dict.fromkeys(process.tuned_by_user(os.environ), process.UNSET)
        return ArmWords(text, installed.python, variables={**unset, **dict(installed.variables)})

    def _compared(self, against: Against, began: float) -> Measured:
        """Measure the rounds, and record them in the history as a run of their own."""
        rounds = AgainstRun(
            against,
            [(self.case, AS_ALL)],
            self.conductor,
            self.progress.say,
            chance=self.chance,
            show=self.progress.show,
            suite=self.suite,
        )
        with _recorded(self.recorder()) as recorder:
            try:
                for _ in rounds.play():
                    """All of them are recorded at the end."""
            finally:
                measurement, verdict, policy = rounds.judged()[self.case]
                if measurement.launches:
                    recorder.case(measurement, verdict, policy)
                    recorder.add_rounds(rounds.rounds)
        seconds = time.monotonic() - began
        self._durations.append(seconds)
        measured = _answered(rounds.comparisons().get(self.case), verdict, seconds)
        if self._sized:
            measured = in_doubt(measured, against.policy.margin)
        return dataclasses.replace(measured, machine=str(measurement.environment.get("machine_key", "")))


@contextlib.contextmanager
def _recorded(recorder: Recorder) -> Iterator[Recorder]:
    """Record that the run ended as the block does: finished, interrupted by Ctrl-C, or failed. Close the history."""
    status: Status = "failed"
    try:
        yield recorder
        status = "finished"
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    finally:
        recorder.finish(status)
        recorder.close()


def in_doubt(measured: Measured, harmless: float) -> Measured:
    """Make a good answer unsure if the candidate is surely slower than the good end, though not as slow as the bad one.

    `harmless` is the slowdown, as a log ratio, up to which a candidate counts as equally fast.
    """
    if measured.answer is not Answer.GOOD or measured.lo is None or math.log(measured.lo) <= harmless:
        return measured
    reason = f"slower than the good end, and not as slow as the bad one: {measured.reason}"
    return dataclasses.replace(measured, answer=Answer.UNSURE, reason=reason)


def _answered(comparison: Comparison | None, verdict: Verdict, seconds: float) -> Measured:
    """Turn a comparison into the answer of its candidate."""
    if comparison is None or comparison.failure is not None:
        fault = comparison.failure if comparison else None
        if fault is not None and comparison is not None and fault.arm is comparison.a:
            raise UsageError(f"the good end does not run the case: {fault.error.reason}")
        return Measured(Answer.SKIP, f"it does not run: {verdict.reason}", seconds=seconds)
    if comparison.stop.why is Why.ABSENT:
        return Measured(Answer.SKIP, comparison.stop.text, seconds=seconds)
    fingerprints = [side.launch.fingerprint for pair in comparison.pairs[:1] for side in (pair.a, pair.b)]
    ran: Sequence[str] = structure.between(*fingerprints).changes if len(fingerprints) == 2 else ()
    others, kernels = (
        str(fingerprint["digest"]) if fingerprint and fingerprint["digest"] else None
        for fingerprint in fingerprints or (None, None)
    )
    answer = ANSWERS.get(verdict.outcome, Answer.SKIP)
    numbers = (verdict.ratio, verdict.lo, verdict.hi)
    # A skip may come from a busy machine, which the next try may not meet.
    lasting = answer is not Answer.SKIP
    return Measured(answer, verdict.reason, *numbers, kernels, others, seconds=seconds, ran=tuple(ran), lasting=lasting)
