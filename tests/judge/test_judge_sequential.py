"""Pairs judged while they come: error rates are as stated, and swapping the arms mirrors the verdict."""

import itertools
import json
import math
import random
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from judge_records import ends

from ipexperf.errors import UsageError
from ipexperf.judge.policy import PairPolicy
from ipexperf.judge.ratios import neighbour_ratio
from ipexperf.judge.sequential import Decision, Reach, decide, due, estimate, levels, reach

POLICY = PairPolicy()
TABLE = Path(__file__).parents[2] / "benchmarks" / "detection" / "levels.txt"
MIRRORED = {"regressed": {"improved"}, "improved": {"regressed"}, "ok": {"ok", "inconclusive"}}
SECONDS = st.floats(1e-6, 1e3)
RATIOS = st.lists(st.floats(-1, 1), min_size=2, max_size=24)


def noisy(pairs: int, shift: float, spread: float, seed: int = 1) -> list[float]:
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secret
    return [chance.gauss(shift, spread) for _ in range(pairs)]


def judged(ratios: list[float], policy: PairPolicy = POLICY) -> Decision:
    """The decision of the first look that decides."""
    for pairs in range(1, len(ratios) + 1):
        if due(pairs, policy):
            found = decide(ratios[:pairs], policy)
            if found.done:
                return found
    return decide(ratios, policy, last=True)


def ratios(pairs: list[list[tuple[float, float]]], unit: float = 1.0) -> list[float]:
    return [neighbour_ratio([a * unit for a, _ in turns], [b * unit for _, b in turns]) for turns in pairs]


@pytest.mark.parametrize(
    ("shift", "outcome"), [(1.10, "regressed"), (1 / 1.10, "improved"), (1.00, "ok"), (1.03, "ok")]
)
def test_a_clear_difference_is_decided_early(shift: float, outcome: str) -> None:
    """With half a per cent of noise ten pairs are enough, whatever the outcome."""
    found = judged(noisy(24, math.log(shift), 0.005))
    assert (found.outcome, found.done) == (outcome, True)
    assert found.pairs <= 10
    low, high = ends(found.verdict)
    assert low < shift < high


def test_the_stated_smallest_effect_is_found_with_the_stated_power() -> None:
    """Four in five comparisons with that slowdown are called regressed. With one look, so that the size is fixed."""
    policy = replace(POLICY, max_pairs=8)
    mdes = [decide(noisy(8, 0.0, 0.05, seed), policy, last=True).verdict.mde or 0 for seed in range(200)]
    size = math.log1p(sorted(mdes)[100])
    found = [decide(noisy(8, size, 0.05, 1000 + seed), policy, last=True).outcome for seed in range(400)]
    assert 0.7 < found.count("regressed") / 400 < 0.9


def test_looking_often_raises_no_more_alarms_than_stated() -> None:
    """The slowdown is just harmless. Testing each look as if it were the only one raises more."""
    policy = replace(POLICY, alpha=0.05, ok_alpha=1e-6)
    liar = replace(policy, levels=(1.0,) * len(policy.looks))
    cases = [noisy(24, policy.margin, 0.05, seed) for seed in range(1500)]
    alarms = {
        name: sum(judged(case, rule).outcome == "regressed" for case in cases) / len(cases)
        for name, rule in (("ours", policy), ("liar", liar))
    }
    assert alarms["ours"] < 0.065
    assert alarms["liar"] > 0.09


def test_contaminated_pairs_are_trimmed_and_the_slowdown_is_found() -> None:
    """One pair in ten is far out. The mean then hides a slowdown of 8 %, and the trimmed mean does not."""
    values = [*noisy(9, math.log(1.08), 0.01), math.log(1.6)]
    found = decide(values, POLICY, last=True)
    assert (found.outcome, found.trimmed) == ("regressed", 4)
    assert decide(values, replace(POLICY, outlier=math.inf), last=True).outcome == "inconclusive"


@given(RATIOS)
def test_swapping_the_arms_mirrors_the_verdict(values: list[float]) -> None:
    """`regressed` becomes `improved`. `ok` may become inconclusive: no slowdown is not yet no speed-up."""
    there, back = decide(values, POLICY), decide([-value for value in values], POLICY)
    assert back.outcome in MIRRORED.get(there.outcome, {"ok", "inconclusive"})
    assert (there.verdict.times or 0) * (back.verdict.times or 0) == pytest.approx(1)
    assert ends(there.verdict)[0] * ends(back.verdict)[1] == pytest.approx(1)


@given(st.lists(st.one_of(st.floats(), st.just(0.0)), max_size=24), st.booleans())
def test_any_numbers_give_an_outcome_that_json_can_hold(values: list[float], last: bool) -> None:  # noqa: FBT001 - given
    """Infinite and missing numbers, no pairs, and enormous ratios."""
    found = decide(values, POLICY, last=last).verdict
    assert found.reason or found.ratio
    numbers = [found.ratio and asdict(found.ratio), found.p_value, found.mde]
    json.dumps(numbers, allow_nan=False)
    if not all(map(math.isfinite, values)):
        assert (found.outcome, numbers) == ("invalid", [None] * 3)


@pytest.mark.parametrize(
    ("values", "outcome", "told"),
    [
        ([], "inconclusive", "no pair was measured"),
        ([0.3], "inconclusive", "one pair has no spread"),
        ([math.nan, 0.0], "invalid", "pair 1 has no ratio"),
        ([0.0, 0.0, math.inf, 0.0], "invalid", "pair 3 has no ratio"),
        ([0.1] * 4, "regressed", ""),
    ],
)
def test_odd_pairs_have_a_defined_outcome(values: list[float], outcome: str, told: str) -> None:
    """No pair, one pair, constant pairs, and pairs without a ratio."""
    found = decide(values, POLICY)
    assert (found.outcome, found.pairs, found.done) == (outcome, len(values), True)
    assert told in found.verdict.reason


def test_an_unproven_improvement_is_ok_at_the_last_look() -> None:
    """While more pairs come it is undecided. At the last look it is surely no slowdown."""
    values = [-0.07, -0.01] * 5
    assert decide(values, POLICY).outcome == "inconclusive"
    assert decide(values, POLICY, last=True).outcome == "ok"


def test_the_last_look_spends_the_rest_of_the_alarm_rate() -> None:
    """Wherever the budget or the maximum of pairs puts it, all looks together spend at most the whole rate."""

    def share(pairs: int, *, last: bool) -> float:
        return levels(pairs, POLICY, last=last).alarm / POLICY.alpha

    assert share(3, last=True) == pytest.approx(1)
    assert share(7, last=True) == pytest.approx(1 - (6 / 24) ** 1.5)
    assert share(6, last=True) > share(6, last=False)
    assert share(13, last=True) == pytest.approx(POLICY.caution * (1 - (12 / 24) ** 1.5))
    assert share(24, last=True) == share(24, last=False) == pytest.approx(POLICY.levels[-1])
    assert [pairs for pairs in range(1, 8) if due(pairs, replace(POLICY, max_pairs=7))] == [4, 5, 6, 7]


def test_the_levels_of_the_policy_are_those_of_the_calibration_table() -> None:
    """The table is stored beside the calibration script."""
    rows = [line.split() for line in TABLE.read_text().splitlines()]
    assert [tuple(map(float, row[2:])) for row in rows if row[:2] == ["lowest", "alarm"]] == [POLICY.levels]
    assert [tuple(map(float, row[2:])) for row in rows if row[:2] == ["lowest", "ok"]] == [POLICY.ok_levels]
    assert [float(row[1]) for row in rows if row[0] == "caution"] == [POLICY.caution]


SLOWER = [0.3, 0.31] * 6 + [-1.0] * 12
"""Pairs that are surely slower, and after them such as would hide it."""


@given(st.lists(st.floats(-1, 1), min_size=24, max_size=24))
@example(SLOWER)
def test_more_pairs_never_make_the_p_value_larger(log_ratios: list[float]) -> None:
    """It is the p-value of all looks so far."""
    found = [decide(log_ratios[:look], POLICY).verdict.p_value or 0.0 for look in POLICY.looks]
    assert all(later <= earlier * (1 + 1e-9) for earlier, later in itertools.pairwise(found))


def test_the_p_value_is_the_alarm_rate_at_which_the_pairs_are_called() -> None:
    """It is the smallest alarm rate at which any look so far would have called the pairs regressed."""
    values = noisy(24, math.log(1.05), 0.02)
    found = judged(values)
    assert found.outcome == "regressed"
    p_value = found.verdict.p_value
    assert p_value is not None
    assert p_value <= POLICY.alpha
    assert judged(values, replace(POLICY, alpha=p_value * 0.999)).pairs >= found.pairs
    assert judged(values, replace(POLICY, alpha=p_value * 1.001)).pairs <= found.pairs


def test_an_estimate_is_that_of_the_textbook() -> None:
    """Mean and t, and Yuen's with a fifth trimmed on each side, whose spread has 0.03 and 0.08 three times each."""
    plain, count = estimate([0.01, 0.02, 0.03, 0.04], POLICY)
    assert (plain.log_ratio, plain.spread.freedom, count) == (pytest.approx(0.025), 3, 0)
    assert plain.spread.scale == pytest.approx(0.012909944 / 2)
    trimmed, count = estimate([0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 9.0], POLICY)
    assert (trimmed.log_ratio, trimmed.spread.freedom, count) == (pytest.approx(0.055), 5, 4)
    # The squares around 0.055 add up to 0.00425, and h is 6.
    assert trimmed.spread.scale == pytest.approx(math.sqrt(0.00425 / (6 * 5)))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [({"max_pairs": 25}, "1 to 24"), ({"tolerance": 1.5}, "tolerance"), ({"alpha": 0.0}, "alpha")],
)
def test_an_impossible_policy_is_refused(wrong: dict[str, float], told: str) -> None:
    """One sentence names the constant."""
    with pytest.raises(UsageError, match=told):
        PairPolicy(**wrong)  # type: ignore[arg-type]


def test_cases_share_the_alarm_rate_and_the_policy_has_another_name() -> None:
    """Up to ten cases are judged like a single one. Each of two hundred has 1/200 of the rate."""
    assert POLICY.shared(10) == POLICY
    assert POLICY.shared(200).alpha == pytest.approx(0.00025)
    assert POLICY.shared(200).label != POLICY.label
    assert POLICY.label.startswith("pairs-2@")


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
