"""The usual noise of a machine: series with few sessions are shrunk to it, and nights that cases share count once."""

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


def test_fewer_than_five_series_with_three_sessions_give_no_usual_noise() -> None:
    """A series with two sessions does not count."""
    four, young = series(0.01, 3, 4), series(0.01, 2, 9)
    assert usual_noise([], POLICY) is None
    assert usual_noise([*four, *young], POLICY) is None
    assert usual_noise([*four, *young, *series(0.01, 3, 1, seed=2)], POLICY) is not None


def test_the_usual_noise_lies_between_the_observed_one_and_the_prior_and_more_nights_move_it() -> None:
    """More nights move it towards the observed one."""
    found = [usual_noise(series(0.01, sessions, 99), POLICY) or 0.0 for sessions in (3, 6, 12)]
    assert 0.19 > found[0] > found[1] > found[2] > 0.01
    assert found[2] < 0.02
    loud = usual_noise(series(0.5, 12, 99), POLICY)
    assert loud is not None
    assert loud > 0.3


@given(NIGHTS, st.integers(5, 60))
def test_sixty_cases_measured_in_the_same_nights_weigh_no_more_than_five(nights: list[float], count: int) -> None:
    assert usual_noise([nights] * count, POLICY) == usual_noise([nights] * 5, POLICY)


def test_a_series_with_few_sessions_is_shrunk_to_the_usual_noise() -> None:
    """On a quiet machine its noise is estimated lower, on a loud one higher."""
    means = [0.0, 0.01, -0.01]
    alone = between_sessions(means, POLICY)
    quiet, loud = (between_sessions(means, replace(POLICY, tau_pool=pool)) for pool in (0.02, 0.4))
    assert quiet.scale < 0.6 * alone.scale
    assert loud.scale > alone.scale
    assert quiet.freedom == loud.freedom == alone.freedom


def test_with_fewer_than_three_sessions_the_usual_noise_is_not_used() -> None:
    """The prior stays, because this case may be noisier than the others."""
    pooled = replace(POLICY, tau_pool=0.01)
    for means in ([0.0], [0.0, 0.02]):
        assert between_sessions(means, pooled) == between_sessions(means, POLICY)


@pytest.mark.parametrize("common", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("sessions", [3, 6])
def test_identical_code_raises_few_alarms_where_all_cases_share_their_nights(sessions: int, common: float) -> None:
    """Part or all of the shifts of ten cases is the machine's. At the stated 0.5 %, 600 verdicts have three alarms."""
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
