"""Measures candidates in turns with the good end, and says what the numbers and the kernels answer."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ipexperf.bisect.answers import Log, Measured
from ipexperf.compare.against import Against, AgainstRun
from ipexperf.conduct import process
from ipexperf.errors import LockError, UsageError
from ipexperf.judge import structure
from ipexperf.judge.bisection import Answer
from ipexperf.plan.arms import ArmWords
from ipexperf.plan.gates import AS_ALL

if TYPE_CHECKING:
    from ipexperf.bisect.software import Installed, Software
    from ipexperf.case import Case
    from ipexperf.compare.sequence import Comparison, Standing
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.history.store import Status
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.recorder import Recorder
    from ipexperf.result import Verdict

SHARE = 0.85
"""The tolerance of a candidate, as a share of what the bad end is surely slower by."""
SURE = 0.8
"""Share of the difference of both ends that must be sure, or else it is measured once more."""
ANSWERS = {"regressed": Answer.BAD, "ok": Answer.GOOD, "improved": Answer.GOOD, "inconclusive": Answer.UNSURE}
"""What a verdict answers. Any other one is a skip: the candidate did not run as it should."""


class Progress(Protocol):
    """Shows people what goes on."""

    def say(self, text: str) -> None: ...

    def show(self, standing: Standing) -> None: ...


class Laboratory:
    """Measures candidates against the good end, which stays ready until it is closed."""

    def __init__(
        self,
        case: Case,
        good: Software,
        cache: Path,
        conductor: Conductor,
        recorder: Callable[[], Recorder],
        policy: PairPolicy,
        progress: Progress,
        log: Log,
        seed: int | None = None,
    ) -> None:
        self._case = case
        self._good = good
        self._cache = cache
        self._conductor = conductor
        self._recorder = recorder
        self._policy = policy
        self._progress = progress
        self.log = log
        self._chance = random.Random(seed)  # noqa: S311 - a start order, no secret
        self.kernels: tuple[str, str] | None = None
        """The fingerprints of both ends, if they differ."""
        self._sized = False
        """Whether candidates are judged by how much slower the bad end is."""
        self._took: list[float] = []
        self._open = contextlib.ExitStack()
        self._good_arm: ArmWords | None = None

    def close(self) -> None:
        """Take down the good end."""
        self._good_arm = None
        self._open.close()

    def timed(self, candidate: Software) -> Measured:
        """Ask the clock: rounds of the good end against the candidate until the judge is sure."""
        key = f"clock {self._policy.tolerance:.6f} {candidate.key}"
        return self._known(key) or self._keep(key, self._measure(candidate, self._policy))

    def sized(self, bad: Software, ends: Measured) -> Measured:
        """Measure once more how much slower the bad end is, unless that is known well. Return what counts.

        Rounds that ended early because the difference looked large show it too large. What is then judged by it, a
        candidate as slow as the bad end, looks like a good one. So the number of these rounds is fixed beforehand.
        """
        if ends.ratio is None or ends.lo is None or ends.lo - 1 >= SURE * (ends.ratio - 1):
            return ends
        most, policy = self._policy.max_pairs, self._policy
        once = dataclasses.replace(
            policy, looks=(most,), levels=policy.levels[-1:], ok_levels=policy.ok_levels[-1:], max_pairs=most
        )
        key = f"size {most} {bad.key}"
        again = self._known(key) or self._keep(key, self._measure(bad, once))
        if again.answer is Answer.BAD:
            return again
        return dataclasses.replace(again, answer=Answer.UNSURE, reason=f"the second time: {again.reason}")

    def quick(self, candidate: Software) -> Measured:
        """Ask which kernels run. Where they are those of neither end, ask the clock."""
        if self.kernels is None:
            return self.timed(candidate)
        key = f"kernels {'/'.join(self.kernels)} {candidate.key}"
        if (known := self._known(key)) is not None:
            return known
        one = self._measure(candidate, dataclasses.replace(self._policy, max_pairs=1))
        if one.kernels not in self.kernels:
            return self._keep(key, one) if one.kernels is None and one.answer is Answer.SKIP else self.timed(candidate)
        bad = one.kernels == self.kernels[1]
        reason = f"it runs the kernels of the {'bad' if bad else 'good'} end"
        answer = Answer.BAD if bad else Answer.GOOD
        return self._keep(key, dataclasses.replace(one, answer=answer, reason=reason, clock=False))

    def judge_by(self, ends: Measured) -> None:
        """Set what is slow: nearer to the bad end than to the good one. Remember the kernels of both ends."""
        if ends.answer is Answer.BAD and ends.lo is not None and ends.lo > 1:
            # Regressed is what surely exceeds 0.4 of the tolerance, ok what surely stays below the tolerance: both
            # sides of the half.
            self._policy = dataclasses.replace(self._policy, tolerance=min(SHARE * (ends.lo - 1), 0.9))
            self._sized = True
        if ends.kernels is not None and ends.others is not None and ends.kernels != ends.others:
            self.kernels = (ends.others, ends.kernels)

    def seconds_each(self) -> float | None:
        """How long a question took, in the median."""
        return statistics.median(self._took) if self._took else None

    def _known(self, key: str) -> Measured | None:
        known = self.log.get(key)
        if known is not None:
            self._progress.say("  known from an earlier try:")
        return known

    def _keep(self, key: str, measured: Measured) -> Measured:
        self.log.put(key, measured)
        return measured

    def _measure(self, candidate: Software, policy: PairPolicy) -> Measured:
        """Compare a candidate with the good end. One that cannot be had is a skip."""
        self._conductor.reserve([self._case])  # before a build, which disturbs others as much as a measurement does
        began = time.monotonic()
        good = self._good_end()
        with contextlib.ExitStack() as until:
            try:
                installed = until.enter_context(candidate.ready(self._cache, self._progress.say))
            except LockError as error:
                return Measured(Answer.SKIP, str(error), seconds=time.monotonic() - began, lasting=False)
            own = self._arm(candidate, installed)
            against = Against(
                good, "--good", {self._case: self._case}, policy, own=own, names=("the good end", "the candidate")
            )
            return self._compared(against, began)

    def _good_end(self) -> ArmWords:
        if self._good_arm is None:
            try:
                installed = self._open.enter_context(self._good.ready(self._cache, self._progress.say))
            except LockError as error:
                raise UsageError(f"the good end cannot be measured: {error}") from error
            self._good_arm = self._arm(self._good, installed)
        return self._good_arm

    def _arm(self, software: Software, installed: Installed) -> ArmWords:
        lock = software.lock(self._cache)
        text = f"lock:{lock.digest}" if lock else software.key
        unset = dict.fromkeys(process.tuned_by_user(os.environ), process.UNSET)
        return ArmWords(text, installed.python, variables={**unset, **dict(installed.variables)})

    def _compared(self, against: Against, began: float) -> Measured:
        """Make the rounds, and write them into the history as a run of their own."""
        running = AgainstRun(
            against,
            [(self._case, AS_ALL)],
            self._conductor,
            self._progress.say,
            chance=self._chance,
            show=self._progress.show,
        )
        recorder = self._recorder()
        status: Status = "interrupted"
        try:
            running.run()
            status = "finished"
        finally:
            measurement, verdict, used = running.judged()[self._case]
            if measurement.launches:
                recorder.case(measurement, verdict, used)
                running.hand_over(recorder.round)
            recorder.finish(status)
            recorder.close()
        seconds = time.monotonic() - began
        self._took.append(seconds)
        measured = _seen(running.comparisons().get(self._case), verdict, seconds)
        if self._sized:
            measured = in_doubt(measured, against.policy.margin)
        return dataclasses.replace(measured, machine=str(measurement.environment.get("machine_key", "")))


def in_doubt(measured: Measured, harmless: float) -> Measured:
    """A candidate that is surely slower than the good end is not good, even if it is not as slow as the bad end.

    `harmless` is the slowdown, as a log ratio, up to which it is as quick.
    """
    if measured.answer is not Answer.GOOD or measured.lo is None or math.log(measured.lo) <= harmless:
        return measured
    reason = f"slower than the good end, and not as slow as the bad one: {measured.reason}"
    return dataclasses.replace(measured, answer=Answer.UNSURE, reason=reason)


def _seen(comparison: Comparison | None, verdict: Verdict, seconds: float) -> Measured:
    """The answer that a comparison gives."""
    if comparison is None or comparison.failure is not None:
        fault = comparison.failure if comparison else None
        if fault is not None and comparison is not None and fault.arm is comparison.a:
            raise UsageError(f"the good end does not run the case: {fault.error.reason}")
        return Measured(Answer.SKIP, f"it does not run: {verdict.reason}", seconds=seconds)
    prints = [side.launch.fingerprint for pair in comparison.pairs[:1] for side in (pair.a, pair.b)]
    ran: Sequence[str] = structure.between(*prints).changes if len(prints) == 2 else ()
    others, kernels = (str(one["digest"]) if one and one["digest"] else None for one in prints or (None, None))
    answer = ANSWERS.get(verdict.outcome, Answer.SKIP)
    numbers = (verdict.ratio, verdict.lo, verdict.hi)
    # The noise of a machine that is busy may be over in the next try.
    lasting = answer is not Answer.SKIP
    return Measured(answer, verdict.reason, *numbers, kernels, others, seconds=seconds, ran=tuple(ran), lasting=lasting)
