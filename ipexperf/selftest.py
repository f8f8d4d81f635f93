"""The selftest of the judge: plan trials, measure pairs, judge and record them."""

from __future__ import annotations

import dataclasses
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipexperf.compare import arm, sequence
from ipexperf.compare.sequence import Comparison, Contest
from ipexperf.conduct import conductor as conducting
from ipexperf.errors import UsageError, WorkerError
from ipexperf.judge.selftest import Trial
from ipexperf.outcomes import Outcome, has_numbers
from ipexperf.plan import arms, injections
from ipexperf.plan.arms import ArmWords
from ipexperf.plan.injections import Injection

if TYPE_CHECKING:
    from ipexperf.bench.machine.facts import Facts
    from ipexperf.case import Case
    from ipexperf.compare.round import Effort
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.judge.policy import PairPolicy


def plan(
    cases: Sequence[Case], chosen: Sequence[Injection], facts: Facts
) -> tuple[list[tuple[Injection, Case, Case]], Counter[str]]:
    """The trials of a round: first every case against itself, then each injection in every case that can have it.

    Raise UsageError if there are none.
    """
    left_out: Counter[str] = Counter()
    able = []
    for case in cases:
        if reason := arms.no_turns(case):
            left_out[reason] += 1
        else:
            able.append(case)
    trials = [(injections.Injection(injections.AA, 0.0), case, case) for case in able]
    for injection in chosen:
        for case in able:
            other, reason = injections.slowed(injection, case, facts)
            if reason:
                left_out[reason] += 1
            else:
                trials.append((injection, case, other))
    if not trials:
        raise UsageError(f"no case can take turns: {'; '.join(left_out)}")
    return trials, left_out


class Selftest:
    """Runs trials one after the other, and records each when it ends."""

    def __init__(
        self,
        conductor: Conductor,
        policy: PairPolicy,
        effort: Effort,
        chance: random.Random,
        say: Callable[[str], None],
        db: str | None = None,
    ) -> None:
        self.policy = policy
        self.done: list[Trial] = []
        self.machine_key: str | None = None
        self._conductor = conductor
        self._effort = effort
        self._chance = chance
        self._say = say
        self._began = time.monotonic()
        self._broken: set[str] = set()
        self._history: Any = None
        if db is not None:
            from ipexperf.history.store import History
            from ipexperf.history.values import run_uid

            self._history, self._session = History.open(db), run_uid()

    def run(self, trials: Sequence[tuple[Injection, Case, Case]]) -> None:
        """Run all trials, or as many as the time allows."""
        for number, (injection, case, other) in enumerate(trials, 1):
            if self._conductor.spent():
                self._say(f"the time is up: {len(trials) - number + 1} of {len(trials)} trials were not run")
                return
            if case.uid in self._broken:
                continue  # its A/A failed, so injections would fail too
            spent = time.monotonic() - self._began
            self._say(f"trial {number} of {len(trials)}, after {spent:.0f} s: {injection.name}, {case.id}")
            self._run_trial(injection, case, other)

    def _run_trial(self, injection: Injection, case: Case, other: Case) -> None:
        """Compare a case with itself, slowed down or not."""
        started, begin = conducting.now(), time.monotonic()
        comparison, failure = None, ""
        try:
            a = arm.arm(self._conductor, case, ArmWords(), "as it is")
            b = arm.arm(self._conductor, other, injection.words, injection.name)
            b = dataclasses.replace(b, conditions=b.conditions.with_settings(**injection.settings))
            # A slowed arm cannot prove its label. The A/A has proven the case.
            prove = injection.size == 0
            comparison = Comparison(a, b, self.policy)
            contest = Contest([comparison], self._effort, self._conductor, self._chance, self._say, prove=prove)
            for _ in contest.play():
                """All pairs are made before the trial is recorded."""
        except WorkerError as error:
            failure = f"{error.outcome}: {error}"
        seconds = time.monotonic() - begin
        self._record(_trial(injection, case, comparison, failure, started, seconds), comparison)

    def _record(self, trial: Trial, comparison: Comparison | None) -> None:
        self.done.append(trial)
        self._say(f"{trial.injection}, {trial.case.id}: {trial.outcome}: {trial.reason}")
        if trial.size == 0 and not has_numbers(trial.outcome):
            self._broken.add(trial.case.uid)
        if comparison is None or not comparison.pairs:
            return  # no worker described the machine: nothing to record
        environment = comparison.pairs[0].a.environment
        self.machine_key = environment["machine_key"]
        if self._history is not None:
            from ipexperf.history import selftests

            selftests.record(self._history, self._session, trial, environment, self.policy, Path.cwd().name)

    def all_trials(self) -> list[Trial]:
        """All trials of this machine under this policy, including earlier selftests."""
        if self._history is None or self.machine_key is None:
            return []
        from ipexperf.history import selftests

        return selftests.trials(self._history, self.machine_key, self.policy)

    def close(self) -> None:
        """Stop processes that outlive a trial."""
        self._conductor.close()
        if self._history is not None:
            self._history.close()


def _trial(
    injection: Injection, case: Case, comparison: Comparison | None, failure: str, started: str, seconds: float
) -> Trial:
    """The record of a comparison."""
    decision = comparison.decision if comparison else None
    outcome, reason = _ended(comparison, failure)
    return Trial(
        case=case,
        injection=injection.name,
        size=injection.size,
        outcome=outcome,
        reason=reason,
        started_at=started,
        finished_at=conducting.now(),
        seconds=seconds,
        log_ratios=tuple(comparison.log_ratios) if comparison else (),
        ratio=decision.ratio if decision else None,
        lo=decision.lo if decision else None,
        hi=decision.hi if decision else None,
        mde=decision.mde if decision else None,
        cut=bool(comparison and comparison.cut),
    )


def _ended(comparison: Comparison | None, failure: str) -> tuple[Outcome, str]:
    """The outcome of a comparison and its reason. A failed or wrong arm comes before the judge's decision."""
    if comparison is None:
        return "failed", failure
    if comparison.failure is not None:
        return "failed", f"{comparison.failure.error.outcome}: {comparison.failure.error}"
    for pair in comparison.pairs[:1]:
        if flaw := sequence.wrong(pair.a.launch) or sequence.wrong(pair.b.launch):
            return "invalid", flaw
    return comparison.decision.outcome, f"{comparison.decision.reason}; {comparison.stop.text}"
