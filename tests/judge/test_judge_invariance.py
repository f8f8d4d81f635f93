"""Verdicts do not depend on units or order, and any numbers give one. These tests look at whole verdicts."""

import json
import random
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_records import QUIET, baseline, measurement

from ipexperf.judge import screen
from ipexperf.judge.policy import PairPolicy, Policy
from ipexperf.judge.sentence import sentence
from ipexperf.ratio import numbers
from ipexperf.verdict import Verdict

POLICY, PAIRS = Policy(), PairPolicy()
UNITS = st.sampled_from([2.0**-20, 0.25, 1024.0])
"""Powers of two: they round nothing, so that the verdict must be exactly the same."""
seconds = st.floats(1e-3, 1.0)
launches = st.lists(seconds, min_size=2, max_size=6)
histories = st.lists(st.lists(seconds, min_size=2, max_size=5), min_size=1, max_size=6)
anything = st.one_of(st.floats(), st.just(0.0), st.just(-1.0))


def judged(new: list[float], old: list[list[float]]) -> Verdict:
    return screen.judge(measurement(new), baseline(old), POLICY)


def alike(one: Verdict, other: Verdict) -> None:
    """The same verdict, and the same numbers but for rounding."""
    assert one.outcome == other.outcome
    first, second = (numbers(x.ratio) | {"p_value": x.p_value, "mde": x.mde} for x in (one, other))
    assert first == pytest.approx(second, rel=1e-6, abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(launches, histories, UNITS)
def test_the_unit_of_time_does_not_change_a_verdict(new: list[float], old: list[list[float]], unit: float) -> None:
    """Seconds or ticks of any clock."""
    alike(judged(new, old), judged([x * unit for x in new], [[x * unit for x in session] for session in old]))


@settings(deadline=None, max_examples=60)
@given(launches, histories, st.randoms(use_true_random=False))
def test_the_order_of_launches_does_not_change_a_verdict(
    new: list[float], old: list[list[float]], chance: random.Random
) -> None:
    """Nor does the order within each session. The order of sessions is their age."""
    mixed = [chance.sample(session, len(session)) for session in old]
    alike(judged(new, old), judged(chance.sample(new, len(new)), chance.sample(mixed, len(mixed))))


@settings(deadline=None, max_examples=60)
@given(launches, st.integers(1, 6))
def test_a_session_equal_to_the_accepted_ones_is_neither_slower_nor_faster(values: list[float], sessions: int) -> None:
    """However noisy the launches are."""
    found = judged(values, [values] * sessions)
    assert found.outcome in ("ok", "inconclusive")
    assert found.times == pytest.approx(1)


@settings(deadline=None, max_examples=60)
@given(launches, launches)
def test_swapping_the_sides_mirrors_the_verdict(one: list[float], other: list[float]) -> None:
    """One session on each side: `regressed` becomes `improved`, and the ratio its inverse."""
    there, back = judged(one, [other]), judged(other, [one])
    mirrored = {"regressed": "improved", "improved": "regressed"}
    assert (there.times or 0) * (back.times or 0) == pytest.approx(1)
    # Whose own launches scatter more decides how sure the screen is: only what is called can contradict.
    if there.outcome in mirrored:
        assert back.outcome in (mirrored[there.outcome], "inconclusive")


@settings(deadline=None, max_examples=100)
@given(st.lists(anything, max_size=6))
def test_any_numbers_give_an_outcome_that_json_can_hold(new: list[float]) -> None:
    """No launch, one launch, infinite and missing numbers."""
    found = judged(new, [list(session) for session in QUIET])
    assert sentence(found)
    json.dumps(asdict(found), allow_nan=False)
    if not new:
        assert found.outcome == "failed"
    elif not all(0 < value < screen.LONGEST for value in new):
        assert (found.outcome, found.ratio) == ("invalid", None)
    elif len(new) == 1:
        assert (found.outcome, found.p_value) == ("inconclusive", None)
