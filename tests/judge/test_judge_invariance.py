"""What must not matter to any judge does not: units, order, odd numbers. Whole verdicts, not their parts."""

from __future__ import annotations

import json
import random
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_records import QUIET, baseline, measurement

from ipexperf.judge import ratios, screen
from ipexperf.judge.pairs import neighbour_ratio
from ipexperf.judge.policy import PairPolicy, Policy
from ipexperf.judge.sequential import decide
from ipexperf.result import Verdict

POLICY, PAIRS = Policy(), PairPolicy()
UNITS = st.sampled_from([2.0**-20, 0.25, 1024.0])
"""Powers of two: nothing is rounded, so that no verdict may turn."""
seconds = st.floats(1e-3, 1.0)
launches = st.lists(seconds, min_size=2, max_size=6)
histories = st.lists(st.lists(seconds, min_size=2, max_size=5), min_size=1, max_size=6)
anything = st.one_of(st.floats(), st.just(0.0), st.just(-1.0))


def judged(new: list[float], old: list[list[float]]) -> Verdict:
    return screen.judge(measurement(new), baseline(old), POLICY)


def alike(one: Verdict, other: Verdict) -> None:
    """The same verdict, and the same numbers but for rounding."""
    assert one.outcome == other.outcome
    for name in ("ratio", "lo", "hi", "p_value", "mde"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-6, abs=1e-9), name


@settings(deadline=None, max_examples=60)
@given(launches, histories, UNITS)
def test_a_verdict_has_no_unit(new: list[float], old: list[list[float]], unit: float) -> None:
    """Seconds or ticks of any clock: the screen says the same."""
    alike(judged(new, old), judged([x * unit for x in new], [[x * unit for x in session] for session in old]))


@settings(deadline=None, max_examples=60)
@given(launches, histories, st.randoms(use_true_random=False))
def test_the_order_of_launches_means_nothing_to_the_screen(
    new: list[float], old: list[list[float]], chance: random.Random
) -> None:
    """Nor does that inside of each session; that of sessions is their age, and means nothing to speed either."""
    mixed = [chance.sample(session, len(session)) for session in old]
    alike(judged(new, old), judged(chance.sample(new, len(new)), chance.sample(mixed, len(mixed))))


@settings(deadline=None, max_examples=60)
@given(launches, st.integers(1, 6))
def test_what_is_identical_has_never_regressed(values: list[float], sessions: int) -> None:
    """However noisy: a session that is every accepted one to the last digit is no slower, and no faster."""
    found = judged(values, [values] * sessions)
    assert found.outcome in ("ok", "inconclusive")
    assert found.ratio == pytest.approx(1)


@settings(deadline=None, max_examples=60)
@given(launches, launches)
def test_swapping_the_arms_of_a_screen_mirrors_it(one: list[float], other: list[float]) -> None:
    """With one session on each side both are alike: regressed there is improved here, and the ratio turns over."""
    there, back = judged(one, [other]), judged(other, [one])
    mirrored = {"regressed": "improved", "improved": "regressed"}
    assert there.ratio is not None
    assert there.ratio * (back.ratio or 0) == pytest.approx(1)
    # Whose own launches scatter more decides how sure the screen is: only what is called can contradict.
    if there.outcome in mirrored:
        assert back.outcome in (mirrored[there.outcome], "inconclusive")


@settings(deadline=None, max_examples=100)
@given(st.lists(anything, max_size=6))
def test_the_screen_has_an_outcome_for_whatever_was_measured(new: list[float]) -> None:
    """No launch, one, infinite and missing numbers: an outcome and a reason, and numbers that JSON can hold."""
    found = judged(new, [list(session) for session in QUIET])
    assert found.reason
    json.dumps(asdict(found), allow_nan=False)
    if not new:
        assert found.outcome == "failed"
    elif not all(0 < value < screen.LONGEST for value in new):
        assert (found.outcome, found.ratio) == ("invalid", None)
    elif len(new) == 1:
        assert (found.outcome, found.p_value) == ("inconclusive", None)


@pytest.mark.parametrize(
    ("new", "old", "outcome"),
    [
        ([0.01] * 3, [[0.01] * 3] * 3, "ok"),
        ([0.02] * 3, [[0.01] * 3] * 3, "regressed"),
        ([0.005] * 3, [[0.01] * 3] * 3, "improved"),
        ([0.01] * 2, [[0.01] * 5] * 3, "ok"),
        ([0.01] * 6, [[0.01] * 2, [0.01] * 5, [0.01] * 3], "ok"),
        ([0.01], [[0.01]], "inconclusive"),
    ],
)
def test_constant_and_unequally_many_launches_have_their_outcome(
    new: list[float], old: list[list[float]], outcome: str
) -> None:
    """No spread at all is believed to be small, not to be none; sides need not be as long as one another."""
    assert judged(new, old).outcome == outcome


@settings(deadline=None, max_examples=60)
@given(launches, launches, UNITS, st.randoms(use_true_random=False))
def test_a_ratio_of_two_cases_has_neither_unit_nor_order(
    one: list[float], other: list[float], unit: float, chance: random.Random
) -> None:
    """And its sides turn it round; with itself a case has no difference to show."""
    found = ratios.compare(one, other, POLICY)
    mixed = ratios.compare([x * unit for x in chance.sample(one, len(one))], [x * unit for x in other], POLICY)
    back = ratios.compare(other, one, POLICY)
    assert (mixed.ratio, mixed.lo, mixed.hi) == pytest.approx((found.ratio, found.lo, found.hi), rel=1e-6)
    assert found.ratio * back.ratio == pytest.approx(1)
    assert not ratios.compare(one, one, POLICY).differs


@given(
    st.lists(st.tuples(seconds, seconds), min_size=1, max_size=8), st.randoms(use_true_random=False), st.integers(4, 24)
)
def test_the_order_of_turns_means_nothing_to_a_pair(
    turns: list[tuple[float, float]], chance: random.Random, pairs: int
) -> None:
    """Neighbours stay neighbours: which of them came first is nobody's business, and so is the verdict."""
    mixed = chance.sample(turns, len(turns))
    one, other = (neighbour_ratio([a for a, _ in x], [b for _, b in x]) for x in (turns, mixed))
    assert one == pytest.approx(other, abs=1e-12)
    assert decide([one] * pairs, PAIRS).outcome == decide([other] * pairs, PAIRS).outcome
