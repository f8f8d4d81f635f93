"""How small a slowdown a machine can show: as often as it says, and never from too little."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.judge.detectable_effect import Reach, reach
from ipexperf.judge.policy import PairPolicy
from ipexperf.judge.sequential import decide

POLICY = PairPolicy()


def noisy(pairs: int, shift: float, spread: float, seed: int) -> list[float]:
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secret
    return [chance.gauss(shift, spread) for _ in range(pairs)]


def effect_of(log_ratios: list[float], policy: PairPolicy = POLICY) -> Reach:
    found = reach(log_ratios, policy)
    assert found is not None
    return found


def test_a_slowdown_of_the_stated_size_is_found_in_four_of_five_simulations() -> None:
    """The noise of these machines is the upper bound that the estimate uses."""
    effect = effect_of(noisy(6, 0.0, 0.03, 1))
    size = math.log1p(effect.smallest)
    found = [decide(noisy(24, size, effect.at_most, seed), POLICY).outcome for seed in range(300)]
    assert 0.7 < found.count("regressed") / 300 < 0.95
    small = [decide(noisy(24, size / 3, effect.at_most, seed), POLICY).outcome for seed in range(300)]
    assert small.count("regressed") / 300 < 0.3


def test_the_noise_is_below_its_stated_upper_bound_in_four_of_five_simulations() -> None:
    """Four pairs determine their spread poorly."""
    held = sum(effect_of(noisy(4, 0.0, 0.02, seed)).at_most >= 0.02 for seed in range(1000))
    assert 0.77 < held / 1000 < 0.83


@given(st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=24), st.floats(-0.5, 0.5))
def test_more_pairs_show_smaller_slowdowns(values: list[float], shift: float) -> None:
    """Fewer pairs never show a smaller one, except near the tolerance. Shifting all pairs changes nothing."""
    found = effect_of(values)
    effects = [effect for _, effect in found.effects]
    assert [pairs for pairs, _ in found.effects] == list(POLICY.looks)
    assert effects[-1] <= max(min(effects[:4]), POLICY.tolerance)
    assert effects[-1] > math.expm1(POLICY.margin)
    assert effect_of([value + shift for value in values]).smallest == pytest.approx(found.smallest, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("values", [[], [0.1], [0.1, math.nan], [math.inf, 0.0, 0.0]])
def test_too_few_pairs_have_no_estimate(values: list[float]) -> None:
    """Neither a slowdown of 0 nor one of infinity."""
    assert reach(values, POLICY) is None
