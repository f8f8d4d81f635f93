"""Which of several equal hosts is odd, since when, and how often a usual one is called so."""

from __future__ import annotations

import math
import random

import pytest

from ipexperf.judge import hosts
from ipexperf.judge.hosts import HostVerdict, Sight

CASES = ("a", "b", "c", "d", "e")


def sights(
    *,
    count: int,
    nights: int,
    shift: dict[str, float],
    begins: int = 0,
    between: float = 0.003,
    noise: float = 0.015,
    seed: int = 1,
) -> list[Sight]:
    """Nights of hosts that differ a little, some by more from a night on. Every night has a level of its own."""
    chance = random.Random(seed)  # noqa: S311 - noise, no secret
    names = [f"h{number}" for number in range(count)]
    own = {name: chance.gauss(0, between) for name in names}
    seen = []
    for night in range(nights):
        software = chance.gauss(0, 0.1)
        for case in CASES:
            for name in names:
                odd = shift.get(name, 0.0) if night >= begins else 0.0
                place = software + own[name] + odd + chance.gauss(0, noise)
                seen.append(Sight(f"2026-11-{night + 1:02}", name, case, 0.1 * math.exp(place)))
    return seen


def states(verdicts: list[HostVerdict]) -> dict[str, str]:
    return {one.host: one.state for one in verdicts if one.state != "usual"}


def test_a_host_that_is_slower_than_its_equals_is_named_with_the_night_it_began() -> None:
    verdicts = hosts.judge(sights(count=6, nights=20, shift={"h3": 0.04}, begins=12))
    assert states(verdicts) == {"h3": "slower"}
    first = verdicts[0]
    assert first.host == "h3"
    assert first.since == "2026-11-13"
    assert first.nights == 8
    assert (first.cases, first.equals) == (5, 5)
    assert first.lo is not None
    assert first.hi is not None
    assert first.lo < math.exp(0.04) < first.hi
    assert first.hi / first.lo < 1.04


def test_a_move_that_all_hosts_share_makes_none_odd() -> None:
    """The software's level moves by 10 % from night to night."""
    assert states(hosts.judge(sights(count=6, nights=10, shift={}))) == {}


def test_two_odd_hosts_do_not_hide_one_another() -> None:
    verdicts = hosts.judge(sights(count=8, nights=10, shift={"h1": 0.05, "h2": 0.05}))
    assert states(verdicts) == {"h1": "slower", "h2": "slower"}
    verdicts = hosts.judge(sights(count=8, nights=10, shift={"h1": 0.05, "h2": -0.05}))
    assert states(verdicts) == {"h1": "slower", "h2": "faster"}


def test_of_three_hosts_none_is_called_odd() -> None:
    verdicts = hosts.judge(sights(count=3, nights=10, shift={"h1": 0.2}))
    assert {one.state for one in verdicts} == {"few"}
    assert next(one for one in verdicts if one.host == "h1").ratio > 1.15


def test_a_small_difference_is_usual_however_certain() -> None:
    verdicts = hosts.judge(sights(count=8, nights=20, shift={"h1": 0.008}, between=0.0, noise=0.001))
    assert states(verdicts) == {}


def test_a_usual_host_is_seldom_called_odd() -> None:
    """One look in 200 may raise a false alarm: 1.5 in these 300, and more than 7 with a probability of 0.0003."""
    looks = [hosts.judge(sights(count=6, nights=4, shift={}, between=0.01, seed=seed)) for seed in range(300)]
    assert sum(bool(states(verdicts)) for verdicts in looks) <= 7


def test_a_night_in_which_one_host_measured_alone_is_ignored() -> None:
    seen = [Sight("1", "a", "x", 1.0), Sight("2", "a", "x", 1.0), Sight("2", "b", "x", 2.0)]
    deviations = hosts.deviations(seen)
    assert list(deviations["a"]) == ["2"]
    assert deviations["a"]["2"] == pytest.approx(-math.log(2) / 2)
    assert hosts.judge([Sight("1", "a", "x", 1.0)]) == []
