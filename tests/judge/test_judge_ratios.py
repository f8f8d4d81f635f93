"""The ratio of two cases of one run: noise is not called a difference, and a failed case has no ratio."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_records import measurement

from ipexperf.judge.policy import Policy
from ipexperf.judge.ratios import compare, sound
from ipexperf.ratio import Ratio
from ipexperf.result import Check, Launch
from ipexperf.verdict import Verdict

TIMES = st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=6)


def test_a_clear_difference_has_its_ratio_and_an_interval_around_it() -> None:
    """Thirty per cent with one per cent of noise has Welch's interval of the textbook."""
    found = compare((1.00, 1.01, 0.99), (1.30, 1.31, 1.29), Policy())
    assert found.value == pytest.approx(1.3, rel=1e-3)
    assert (found.lo, found.hi) == (pytest.approx(1.2743, abs=1e-3), pytest.approx(1.3264, abs=1e-3))
    assert found.differs


def test_noise_alone_is_called_a_difference_as_rarely_as_the_policy_says() -> None:
    """Pairs of equal cases with 20 % of noise between processes, in families of four ratios."""
    chance, families = random.Random(7), 500  # noqa: S311 - a simulation, no secret

    def launches() -> list[float]:
        return [math.exp(chance.gauss(0, 0.2)) for _ in range(3)]

    wrong = sum(any(compare(launches(), launches(), Policy(), 4).differs for _ in range(4)) for _ in range(families))
    assert wrong <= 1.5 * Policy().false_discovery_rate * families


def test_a_family_of_ratios_has_wider_intervals_than_one_alone() -> None:
    """A ratio may differ from 1 by itself, and not as one of a hundred."""
    sides = (1.00, 1.02, 0.98), (1.08, 1.10, 1.06)
    alone, one_of_many = compare(*sides, Policy()), compare(*sides, Policy(), 100)
    assert alone.differs
    assert not one_of_many.differs
    assert alone.value == one_of_many.value


def test_a_single_launch_has_no_interval_and_shows_no_difference() -> None:
    """The process is the unit, and one has no spread."""
    assert compare((1.0,), (9.0, 9.0), Policy()) == Ratio(pytest.approx(9.0), apart=True)
    assert not compare((1.0, 1.0), (9.0,), Policy()).differs


@given(TIMES, TIMES)
def test_a_ratio_lies_in_its_interval_and_swapping_the_sides_inverts_both(
    first: list[float], second: list[float]
) -> None:
    there, back = compare(first, second, Policy()), compare(second, first, Policy())
    assert there.lo is not None
    assert there.hi is not None
    assert there.lo <= there.value <= there.hi
    assert back.lo is not None
    assert there.value * back.value == pytest.approx(1)
    assert there.hi * back.lo == pytest.approx(1)
    assert there.differs == back.differs


def test_a_failed_invalid_or_contended_measurement_is_not_sound() -> None:
    """No ratio is made of it, whether the measurement or the verdict says so."""
    good = measurement((1.0, 1.0))
    crashed = replace(good, launches=(*good.launches, Launch(2, "crashed", "signal 11")))
    unproven = measurement((1.0, 1.0), proof=(Check("dtype", ok=False, found="fp32", expected="bf16"),))
    assert sound(good, None)
    assert sound(good, Verdict("regressed", ""))
    assert not sound(good, Verdict("invalid", ""))
    for bad in (crashed, unproven, measurement((1.0,), contended="steal 50 %"), measurement((1.0, 0.0)),
                measurement((1.0, math.inf)), measurement(())):  # fmt: skip
        assert not sound(bad, None)
