"""More data never makes an alarm vanish: the runner ends with it, and where a second look takes it back it is told."""

from __future__ import annotations

import itertools
import math
import random
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ipexperf.bench.api import Settings
from ipexperf.case import Case
from ipexperf.compare.arm import Arm
from ipexperf.compare.round import Effort, Round, Side
from ipexperf.compare.sequence import Comparison, Contest, Why
from ipexperf.compare.together import Together
from ipexperf.conduct.conditions import Conditions
from ipexperf.judge import remeasure, sequential
from ipexperf.judge.policy import PairPolicy, Policy
from ipexperf.judge.run import settle
from ipexperf.judge.sequential import Decision
from ipexperf.result import BaselineEvidence, Launch, Outcome, Verdict

POLICY = PairPolicy()
MOST = POLICY.looks[-1]
ARM = Arm(Case("tiny", "fake", "fp32", "spin", "plain", 1, 1, data="none"), Conditions(Settings()))
SLOWER = [0.3, 0.31] * 6 + [-1.0] * 12
"""Pairs that are surely slower, and after them such as would hide it."""


def _series(shift: float, noise: list[float], tail: list[float]) -> list[float]:
    return [*(shift + value for value in noise[: MOST - len(tail)]), *tail]


SERIES = st.builds(
    _series,
    st.floats(-0.2, 0.4),
    st.lists(st.floats(-0.05, 0.05), min_size=MOST, max_size=MOST),
    st.lists(st.floats(-1, 1), max_size=20),
)
"""All pairs that there may be: some of one machine, and then whatever comes."""


def side(time: float) -> Side:
    return Side(ARM, Launch(0, "ok"), {}, ((time,),))


def taken(log_ratios: list[float], budget: int = MOST + 1) -> tuple[Comparison, list[Decision]]:
    """What the runner makes of these pairs, while the budget of so many lasts, and all that the judge said to it."""
    come, left = iter(log_ratios), iter([False] * budget)
    said: list[Decision] = []

    def decide(values: list[float], policy: PairPolicy, *, last: bool = False) -> Decision:
        found = judge(values, policy, last=last)
        if values:
            said.append(found)
        return found

    judge = sequential.decide
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Together,
            "play",
            lambda *_: Round((side(1.0), side(math.exp(next(come)))), "together", "2026-11-22T12:00:00.000+00:00"),
        )
        patch.setattr(sequential, "decide", decide)
        chance = random.Random(1)  # noqa: S311 - a start order, no secret
        contest = Contest([(ARM, ARM)], [POLICY], Effort(), lambda: next(left, True), chance, lambda _: None)
        [found] = contest.run()
    return found, said


@given(SERIES)
@example(SLOWER)
def test_the_runner_ends_with_an_alarm(log_ratios: list[float]) -> None:
    """No pair is taken after it that could make it look like noise; and every look before was an open question."""
    found, said = taken(log_ratios)
    *before, last = said
    assert {(look.outcome, look.done) for look in before} <= {("inconclusive", False)}
    assert found.decision == last
    assert last.done
    assert last.pairs == len(found.pairs)
    assert [look for look in said if look.outcome == "regressed"] == [last] * (last.outcome == "regressed")


def test_what_comes_after_an_alarm_would_have_hidden_it() -> None:
    """The liar among the runners: it takes all the pairs, and asks once."""
    assert taken(SLOWER)[0].decision.outcome == "regressed"
    assert sequential.decide(SLOWER, POLICY).outcome != "regressed"


@given(SERIES, st.integers(1, MOST))
@example(SLOWER, 4)
@example(SLOWER, 3)
def test_more_time_takes_no_alarm_back_unless_the_budget_had_forced_it(log_ratios: list[float], budget: int) -> None:
    """Where it was spent, the last look was made for want of more; and that is told with it."""
    less, more = taken(log_ratios, budget)[0], taken(log_ratios)[0]
    if less.decision.outcome == "regressed" and more.decision.outcome != "regressed":
        told = f"the budget (--perf-budget) was spent after {budget} pair{'s' if budget > 1 else ''}"
        assert (less.stop.why, less.stop.text) == (Why.BUDGET, told)
    if less.stop.why is not Why.BUDGET:
        assert (less.decision, less.stop) == (more.decision, more.stop)


@given(SERIES)
@example(SLOWER)
def test_what_an_early_look_saw_stays_in_the_p_value(log_ratios: list[float]) -> None:
    """It is that of all looks so far: later pairs can make it smaller, never larger."""
    found = [sequential.decide(log_ratios[:look], POLICY).p_value or 0.0 for look in POLICY.looks]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in itertools.pairwise(found))


RATIOS = st.one_of(st.none(), st.floats(0.01, 100))
OTHERS = [
    Verdict(
        "regressed", "", ratio=1.2, lo=1.1, hi=1.3, p_value=1e-4, evidence=BaselineEvidence(between_sessions_known=True)
    )
]


@given(RATIOS, st.sampled_from(get_args(Outcome)), RATIOS, st.sampled_from(["", "so it is"]))
def test_what_was_called_regressed_once_is_never_silently_fine(
    before: float | None, outcome: Outcome, after: float | None, why: str
) -> None:
    """Whatever the second look says, and the run as a whole after it: the reason tells of the first."""
    first = Verdict("regressed", "it was slower", ratio=before)
    second = Verdict(outcome, why, ratio=after)
    found = remeasure.settle(first, second)
    assert found.outcome not in ("ok", "improved", "no_baseline", "not_comparable")
    told = "by an unknown share" if before is None else f"{100 * (before - 1):+.1f} %"
    assert told in found.reason
    assert why in found.reason
    if outcome == "regressed":
        assert (found.outcome, found.ratio) == ("regressed", after)
        assert "measured twice in this run" in found.reason
    else:
        assert found.reason.startswith("it looked slower at first (")
        assert found.outcome in ("inconclusive", outcome)
    run = settle({"a": found, **{str(x): other for x, other in enumerate(OTHERS * 6)}}, Policy().for_run())
    assert run.verdicts["a"].reason.endswith(found.reason)


@given(RATIOS)
def test_an_alarm_that_nobody_looked_at_again_is_told_too(ratio: float | None) -> None:
    found = remeasure.never(Verdict("regressed", "it was slower", ratio=ratio))
    assert found.outcome == "inconclusive"
    assert found.reason.startswith("it looked slower (")
    assert found.reason.endswith("it was slower")
