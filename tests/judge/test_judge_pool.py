"""The usual noise of a machine: its launches and sessions tell it, and nights that cases share count once."""

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
NIGHTS = st.lists(st.floats(-1, 1), min_size=2, max_size=12)


def series(noise: float, sessions: int, count: int, seed: int = 1) -> list[list[list[float]]]:
    """The logs of launches whose sessions spread by this, and launches of a session by half of it."""
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secret
    found = []
    for _ in range(count):
        levels = [chance.gauss(0, noise) for _ in range(sessions)]
        found.append([[level + chance.gauss(0, noise / 2) for _ in range(3)] for level in levels])
    return found


def test_without_a_series_the_prior_is_all_that_is_known() -> None:
    assert usual_noise([], POLICY) == POLICY
    assert usual_noise([[[0.1]]], POLICY) == POLICY


def test_the_launches_of_one_session_tell_a_quiet_machine_from_a_loud_one() -> None:
    """More cases tell it better, and the prior keeps its say."""
    quiet, quieter, loud = (
        usual_noise(series(noise, 1, count), POLICY) for noise, count in ((0.01, 1), (0.01, 20), (0.9, 20))
    )
    assert 0.005 < quiet.tau_prior < 0.05 < POLICY.tau_prior < loud.tau_prior
    assert POLICY.tau_prior_spread > quiet.tau_prior_spread > quieter.tau_prior_spread > POLICY.launch_spread / 2


def test_five_series_with_two_sessions_tell_how_much_nights_differ() -> None:
    """Their launches agree, and the nights do not."""
    nights = [[[0.0, 0.01, -0.01], [0.5, 0.51, 0.49]]]
    four, five = (usual_noise(nights * count, POLICY) for count in (4, 5))
    assert five.tau_prior > 1.2 * four.tau_prior


@given(NIGHTS)
def test_sixty_cases_measured_in_the_same_nights_tell_no_more_of_nights_than_five(nights: list[float]) -> None:
    """Only of launches do they tell more."""
    launches = replace(POLICY, launch_spread=1e3)
    one = [[night, night + 0.01] for night in nights]
    few, many = (usual_noise([one] * count, launches) for count in (5, 60))
    assert few.tau_prior == pytest.approx(many.tau_prior, rel=0.01)


def test_a_series_with_few_sessions_leans_on_what_is_usual() -> None:
    means = [0.0, 0.01, -0.01]
    quiet, loud = (between_sessions(means, replace(POLICY, tau_prior=usual)) for usual in (0.02, 0.4))
    alone = between_sessions(means, POLICY)
    assert quiet.scale < alone.scale < loud.scale
    assert quiet.freedom == loud.freedom == alone.freedom


@pytest.mark.parametrize("common", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("sessions", [3, 6])
def test_identical_code_raises_few_alarms_where_all_cases_share_their_nights(sessions: int, common: float) -> None:
    """Part or all of the shifts of ten cases is the machine's. At the stated 2 %, 600 first looks have 12 alarms."""
    chance = random.Random(11)  # noqa: S311 - a simulation, no secret
    alarms = 0
    for _ in range(60):
        shared = [chance.gauss(0, 0.03) for _ in range(sessions + 1)]
        cases = []
        for _ in range(10):
            shifts = [math.sqrt(common) * x + math.sqrt(1 - common) * chance.gauss(0, 0.03) for x in shared]
            cases.append([[math.exp(shift + chance.gauss(0, 0.01)) for _ in range(3)] for shift in shifts])
        policy = usual_noise([[[math.log(x) for x in one] for one in case[:-1]] for case in cases], POLICY)
        alarms += [decide(compare(case[-1], case[:-1], policy), policy) for case in cases].count("regressed")
    assert alarms <= 12
