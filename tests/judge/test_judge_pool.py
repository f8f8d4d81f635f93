"""What is usual on a machine: a series with few sessions leans on it, and luck that all nights shared tells nothing."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.judge.policy import Policy
from ipexperf.judge.screen import decide
from ipexperf.judge.spread import between_sessions, compare, usual_noise

POLICY = Policy()
NIGHTS = st.lists(st.floats(-1, 1), min_size=3, max_size=12)


def series(noise: float, sessions: int, count: int, seed: int = 1) -> list[list[float]]:
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secret
    return [[chance.gauss(0, noise) for _ in range(sessions)] for _ in range(count)]


def test_few_series_tell_nothing_and_young_ones_are_none() -> None:
    """Five with three sessions each; one with two does not count."""
    four, young = series(0.01, 3, 4), series(0.01, 2, 9)
    assert usual_noise([], POLICY) is None
    assert usual_noise([*four, *young], POLICY) is None
    assert usual_noise([*four, *young, *series(0.01, 3, 1, seed=2)], POLICY) is not None


def test_what_is_usual_lies_between_what_is_seen_and_the_prior_and_nearer_with_more_nights() -> None:
    found = [usual_noise(series(0.01, sessions, 99), POLICY) or 0.0 for sessions in (3, 6, 12)]
    assert 0.19 > found[0] > found[1] > found[2] > 0.01
    assert found[2] < 0.02
    loud = usual_noise(series(0.5, 12, 99), POLICY)
    assert loud is not None
    assert loud > 0.3


@given(NIGHTS, st.integers(5, 60))
def test_sixty_cases_that_saw_the_same_nights_tell_no_more_than_five(nights: list[float], count: int) -> None:
    assert usual_noise([nights] * count, POLICY) == usual_noise([nights] * 5, POLICY)


def test_three_sessions_are_worth_more_among_quiet_neighbours() -> None:
    """On a quiet machine the noise of a young series is believed to be smaller, on a loud one to be larger."""
    means = [0.0, 0.01, -0.01]
    alone = between_sessions(means, POLICY)
    quiet, loud = (between_sessions(means, replace(POLICY, tau_pool=pool)) for pool in (0.02, 0.4))
    assert quiet.scale < 0.6 * alone.scale
    assert loud.scale > alone.scale
    assert quiet.freedom == loud.freedom == alone.freedom


def test_while_the_noise_is_unknown_neighbours_change_nothing() -> None:
    """With one or two sessions the prior stays: this case may be louder than they are."""
    pooled = replace(POLICY, tau_pool=0.01)
    for means in ([0.0], [0.0, 0.02]):
        assert between_sessions(means, pooled) == between_sessions(means, POLICY)


@pytest.mark.parametrize("common", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("sessions", [3, 6])
def test_identical_code_raises_no_alarm_though_nights_were_alike(sessions: int, common: float) -> None:
    """Ten cases whose shifts are partly or wholly the machine's: of 600, at the stated 0.5 %, three are expected."""
    chance = random.Random(11)  # noqa: S311 - a simulation, no secret
    alarms = 0
    for _ in range(60):
        shared = [chance.gauss(0, 0.03) for _ in range(sessions + 1)]
        cases = []
        for _ in range(10):
            shifts = [math.sqrt(common) * x + math.sqrt(1 - common) * chance.gauss(0, 0.03) for x in shared]
            cases.append([[math.exp(shift + chance.gauss(0, 0.01)) for _ in range(3)] for shift in shifts])
        pool = usual_noise([[sum(map(math.log, one)) / 3 for one in case[:-1]] for case in cases], POLICY)
        policy = replace(POLICY, tau_pool=pool)
        alarms += [decide(compare(case[-1], case[:-1], policy), policy) for case in cases].count("regressed")
    assert alarms <= 6
