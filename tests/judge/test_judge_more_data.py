"""More data never makes an alarm vanish silently: the runner stops at it, and a later verdict mentions it."""

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


def compared(log_ratios: list[float], budget: int = MOST + 1) -> tuple[Comparison, list[Decision]]:
    """The comparison by the runner that ends after `budget` pairs at most, and each decision of the judge."""
    remaining, spent = iter(log_ratios), iter([False] * budget)
    decisions: list[Decision] = []

    def decide(values: list[float], policy: PairPolicy, *, last: bool = False) -> Decision:
        found = judge(values, policy, last=last)
        if values:
            decisions.append(found)
        return found

    judge = sequential.decide
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Together,
            "play",
            lambda *_: Round((side(1.0), side(math.exp(next(remaining)))), "together", "2026-11-22T12:00:00.000+00:00"),
        )
        patch.setattr(sequential, "decide", decide)
        chance = random.Random(1)  # noqa: S311 - a start order, no secret
        contest = Contest([(ARM, ARM)], [POLICY], Effort(), lambda: next(spent, True), chance, lambda _: None)
        [found] = contest.run()
    return found, decisions


@given(SERIES)
@example(SLOWER)
def test_the_runner_stops_at_the_first_alarm(log_ratios: list[float]) -> None:
    """All looks before it were undecided, and no pair is measured after it."""
    found, decisions = compared(log_ratios)
    *before, last = decisions
    assert {(look.outcome, look.done) for look in before} <= {("inconclusive", False)}
    assert found.decision == last
    assert last.done
    assert last.pairs == len(found.pairs)
    assert [look for look in decisions if look.outcome == "regressed"] == [last] * (last.outcome == "regressed")


def test_pairs_after_an_alarm_would_have_hidden_it() -> None:
    """A judge that looked once, after all pairs, would miss this slowdown."""
    assert compared(SLOWER)[0].decision.outcome == "regressed"
    assert sequential.decide(SLOWER, POLICY).outcome != "regressed"


@given(SERIES, st.integers(1, MOST))
@example(SLOWER, 4)
@example(SLOWER, 3)
def test_a_larger_budget_takes_no_alarm_back_unless_a_spent_one_forced_it(log_ratios: list[float], budget: int) -> None:
    """A spent budget forces the last look, and the comparison says that it was spent."""
    less, more = compared(log_ratios, budget)[0], compared(log_ratios)[0]
    if less.decision.outcome == "regressed" and more.decision.outcome != "regressed":
        told = f"the budget (--perf-budget) was spent after {budget} pair{'s' if budget > 1 else ''}"
        assert (less.stop.why, less.stop.text) == (Why.BUDGET, told)
    if less.stop.why is not Why.BUDGET:
        assert (less.decision, less.stop) == (more.decision, more.stop)


@given(SERIES)
@example(SLOWER)
def test_more_pairs_never_make_the_p_value_larger(log_ratios: list[float]) -> None:
    """It is the p-value of all looks so far."""
    found = [sequential.decide(log_ratios[:look], POLICY).p_value or 0.0 for look in POLICY.looks]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in itertools.pairwise(found))


RATIOS = st.one_of(st.none(), st.floats(0.01, 100))
OTHERS = [
    Verdict(
        "regressed", "", ratio=1.2, lo=1.1, hi=1.3, p_value=1e-4, evidence=BaselineEvidence(between_sessions_known=True)
    )
]


@given(RATIOS, st.sampled_from(get_args(Outcome)), RATIOS, st.sampled_from(["", "so it is"]))
def test_the_final_reason_mentions_a_first_verdict_of_regressed(
    before: float | None, outcome: Outcome, after: float | None, why: str
) -> None:
    """Whatever the second measurement and the run as a whole say."""
    first = Verdict("regressed", "it was slower", ratio=before)
    second = Verdict(outcome, why, ratio=after)
    found = remeasure.settle(first, second, second)
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
def test_the_reason_mentions_an_alarm_that_was_not_measured_again(ratio: float | None) -> None:
    found = remeasure.without_second(Verdict("regressed", "it was slower", ratio=ratio))
    assert found.outcome == "inconclusive"
    assert found.reason.startswith("it looked slower (")
    assert found.reason.endswith("it was slower")
