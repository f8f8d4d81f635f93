"""More data never makes an alarm vanish silently: a later verdict mentions it."""

from __future__ import annotations

import itertools
from typing import get_args

from hypothesis import example, given
from hypothesis import strategies as st

from ipexperf.judge import remeasure, sequential
from ipexperf.judge.policy import PairPolicy, Policy
from ipexperf.judge.run import settle
from ipexperf.result import BaselineEvidence, Outcome, Verdict

POLICY = PairPolicy()
MOST = POLICY.looks[-1]
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


def test_pairs_after_an_alarm_would_have_hidden_it() -> None:
    """A judge that looked once, after all pairs, would miss this slowdown. The runner stops at the first alarm."""
    found = sequential.decide(SLOWER[: POLICY.looks[0]], POLICY)
    assert (found.outcome, found.done) == ("regressed", True)
    assert sequential.decide(SLOWER, POLICY).outcome != "regressed"


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
