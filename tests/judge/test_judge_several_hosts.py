"""Whether new software is slower on several equal hosts, and which of them disagrees."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.judge import several_hosts
from ipexperf.judge.policy import HostsPolicy
from ipexperf.judge.several_hosts import HostRatio, of_runs

POLICY = HostsPolicy()
RATIOS = st.lists(st.tuples(st.floats(-0.5, 0.5), st.floats(0.001, 0.1), st.floats(1, 30)), min_size=2, max_size=8)


def fleet(*slower: float, error: float = 0.005, freedom: float = 8.0) -> list[HostRatio]:
    return [HostRatio(f"h{number}", math.log1p(one), error, freedom) for number, one in enumerate(slower)]


def test_five_hosts_together_show_a_slowdown_that_none_shows_alone() -> None:
    five = several_hosts.judge(fleet(0.047, 0.052, 0.050, 0.045, 0.056), POLICY)
    two = several_hosts.judge(fleet(0.047, 0.056), POLICY)
    assert five.outcome == "regressed"
    assert five.reason.startswith("5.0% slower (90% interval +")
    assert five.reason.endswith("5 hosts), surely more than 2%")
    assert two.outcome == "inconclusive"
    assert five.lo > two.lo
    assert five.hi < two.hi


def test_hosts_without_a_difference_exclude_a_slowdown() -> None:
    same = several_hosts.judge(fleet(0.004, -0.006, 0.001), POLICY)
    assert same.outcome == "ok"
    assert same.reason.startswith("a slowdown above 5% is excluded")


def test_two_hosts_suffice_for_a_large_slowdown() -> None:
    """With two hosts, nothing but their distance would need an interval of 64 times its error."""
    assert several_hosts.judge(fleet(0.30, 0.33), POLICY).outcome == "regressed"
    assert several_hosts.judge(fleet(0.30, 0.33), replace(POLICY, trust=0.0)).outcome == "inconclusive"


def test_a_host_that_disagrees_is_named_and_left_out() -> None:
    combined = several_hosts.judge(fleet(0.001, -0.002, 0.30, 0.002, 0.0, -0.001), POLICY)
    assert combined.odd == ("h2",)
    assert (combined.outcome, combined.hosts) == ("ok", 5)
    sentence = "left out: h2, where the change is 30.0% slower than on the others: the machine, not the software"
    assert sentence in combined.reason


def test_a_host_that_misses_a_slowdown_of_all_others_is_named_too() -> None:
    combined = several_hosts.judge(fleet(0.30, 0.301, 0.0, 0.302, 0.30, 0.299), POLICY)
    assert combined.odd == ("h2",)
    assert (combined.outcome, combined.ratio) == ("regressed", pytest.approx(1.30, abs=0.002))
    assert "left out: h2, where the change is 23.1% faster than on the others" in combined.reason


@pytest.mark.parametrize("more", [(), (0.001,), (0.001, -0.001)])
def test_of_four_that_disagree_none_is_named(more: tuple[float, ...]) -> None:
    """Two or three of so few hosts may agree by chance."""
    combined = several_hosts.judge(fleet(0.0, 0.30, *more), POLICY)
    assert combined.odd == ()
    assert combined.disagree
    assert combined.outcome == "inconclusive"
    end = " to +30.0% on h1, and of fewer than 5 none is called the odd one"
    assert combined.reason.endswith(end)


def test_hosts_that_split_in_halves_are_said_to_disagree() -> None:
    """No single machine is at fault."""
    combined = several_hosts.judge(fleet(0.0, 0.001, 0.002, 0.15, 0.151, 0.152), POLICY)
    assert combined.odd == ()
    assert combined.disagree
    assert combined.outcome == "inconclusive"
    assert "farthest from the others, not surely enough to leave it out" in combined.reason


def noisy(chance: random.Random, count: int, hosts: int, spread: float, slower: float = 0.0) -> list[list[HostRatio]]:
    """The ratios of some cases, each of which differs so from host to host."""
    names = [f"h{number}" for number in range(hosts)]
    return [[HostRatio(name, chance.gauss(slower, spread), 0.005, 8) for name in names] for _ in range(count)]


def test_cases_that_differ_from_host_to_host_raise_the_assumed_spread() -> None:
    """Two hosts of a shared cloud agree in one case of ten by chance, and differ in the others."""
    chance = random.Random(1)  # noqa: S311 - noise, no secret
    alarms, before = 0, 0
    for _ in range(50):
        cases = noisy(chance, 10, 2, 0.2)
        policy = several_hosts.corrected(cases, POLICY)
        alarms += sum(several_hosts.judge(one, policy).outcome == "regressed" for one in cases)
        before += sum(several_hosts.judge(one, POLICY).outcome == "regressed" for one in cases)
    assert alarms == 0
    assert before > 10


def test_the_spread_that_cases_show_is_estimated_and_never_below_the_assumed_one() -> None:
    chance = random.Random(2)  # noqa: S311 - noise, no secret
    raised = several_hosts.corrected(noisy(chance, 100, 4, 0.1), POLICY)
    assert raised.likely_spread == pytest.approx(0.1, rel=0.1)
    assert raised.likely_trust == pytest.approx(POLICY.trust / 25, rel=0.25)
    assert several_hosts.corrected(noisy(chance, 100, 4, 0.001), POLICY) == POLICY
    assert several_hosts.corrected([], POLICY) == POLICY
    assert several_hosts.corrected([fleet(0.5)], POLICY) == POLICY


def test_one_host_that_is_odd_in_all_cases_does_not_raise_the_spread() -> None:
    """It is named in each case, and the others are as sure as without it."""
    chance = random.Random(3)  # noqa: S311 - noise, no secret
    cases = [[*rest, HostRatio("odd", 0.3, 0.005, 8)] for rest in noisy(chance, 10, 5, 0.005)]
    policy = several_hosts.corrected(cases, POLICY)
    assert policy.likely_spread == POLICY.spread
    assert {several_hosts.judge(one, policy).odd for one in cases} == {("odd",)}


@given(RATIOS)
def test_inverting_all_ratios_mirrors_the_verdict(values: list[tuple[float, float, float]]) -> None:
    ratios = [HostRatio(f"h{number}", *one) for number, one in enumerate(values)]
    mirrored = [replace(one, log_ratio=-one.log_ratio) for one in ratios]
    one, other = several_hosts.judge(ratios, POLICY), several_hosts.judge(mirrored, POLICY)
    assert one.odd == other.odd
    assert (one.ratio * other.ratio, one.lo * other.hi) == pytest.approx((1, 1))


@given(st.integers(2, 8), st.floats(0.001, 0.2), st.floats(1, 30))
def test_the_interval_is_never_narrower_than_the_launches_make_it(hosts: int, error: float, freedom: float) -> None:
    """However much the hosts agree."""
    from scipy.stats import t

    combined = several_hosts.judge(fleet(*[0.0] * hosts, error=error, freedom=freedom), POLICY)
    half = t.ppf(0.95, hosts * freedom) * error / math.sqrt(hosts)
    assert math.log(combined.hi) >= half * (1 - 1e-9)


def test_the_interval_covers_as_often_as_stated() -> None:
    """In 90 of a hundred, and not in many more, where hosts differ as assumed."""
    chance, covered, count = random.Random(1), 0, 1000  # noqa: S311 - noise, no secret
    for _ in range(count):
        ratios = [HostRatio(str(number), chance.gauss(0.03, math.hypot(0.02, 0.01)), 0.01, 8) for number in range(5)]
        combined = several_hosts.judge(ratios, POLICY)
        covered += combined.lo <= math.exp(0.03) <= combined.hi
    assert 0.88 <= covered / count <= 0.97


def test_the_error_of_a_host_with_one_run_comes_from_its_launches() -> None:
    one = of_runs("a", [[1.0, 1.02, 0.98]], [[1.1, 1.12, 1.08]])
    assert one is not None
    assert one.ratio == pytest.approx(1.1, abs=0.002)
    assert one.error == pytest.approx(0.02 / math.sqrt(3) * math.sqrt(2), rel=0.1)
    assert one.freedom == pytest.approx(4, rel=0.05)
    assert of_runs("a", [[1.0]], [[1.1, 1.2]]) is None


def test_the_error_of_a_host_with_several_runs_comes_from_their_differences() -> None:
    launches = [[1.0, 1.001, 0.999], [1.1, 1.101, 1.099], [0.9, 0.901, 0.899]]
    several, single = of_runs("a", launches, launches), of_runs("a", launches[:1], launches[:1])
    assert several is not None
    assert single is not None
    assert several.error > 10 * single.error
    assert several.freedom == pytest.approx(4)
