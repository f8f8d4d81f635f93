"""Change points: what is a level, what is noise, and what an odd night must not do."""

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipexperf.judge.changes import TOGETHER, ChangePoint, courses
from ipexperf.judge.levels import MINIMUM


def noisy(levels, sd=0.02, seed=11, rho=0.3):
    """Step times around the levels of each run, whose noise is like that of the run before."""
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secret
    noise, values = chance.gauss(0, 1), []
    for level in levels:
        values.append(level * math.exp(sd * noise))
        noise = rho * noise + math.sqrt(1 - rho**2) * chance.gauss(0, 1)
    return values


def find(values):
    (course,) = courses([values])
    return list(course.changes)


def test_a_level_that_moved_is_found_with_its_size():
    """Thirty nights, then twenty that are ten per cent slower."""
    (change,) = find(noisy([0.010] * 30 + [0.011] * 20))
    assert abs(change.index - 30) <= 1
    assert change.ratio == pytest.approx(1.1, rel=0.02)
    assert (change.before, change.after) == (change.index, 50 - change.index)
    assert change.score > 5
    assert change.earliest <= 30 <= change.latest


def test_a_clear_step_has_no_doubt_and_a_faint_one_has_a_range():
    """The faint one is 1.5 times the least size that is reported: it may have begun some nights before or after."""
    (clear,) = find(noisy([0.010] * 30 + [0.012] * 20))
    assert (clear.earliest, clear.latest) == (30, 30)
    (faint,) = find(noisy([0.010] * 60 + [0.0103] * 60))
    assert faint.earliest < faint.latest
    assert faint.earliest <= faint.index <= faint.latest


def test_a_step_up_and_back_are_two_changes():
    """A regression that was repaired is reported as two changes, however short it was."""
    found = find(noisy([0.010] * 60 + [0.012] * 8 + [0.010] * 60))
    assert [abs(change.index - at) <= 1 for change, at in zip(found, (60, 68), strict=True)] == [True, True]
    assert [change.ratio > 1 for change in found] == [True, False]


@pytest.mark.parametrize("odd", range(1, MINIMUM + 1))
@pytest.mark.parametrize("place", ["middle", "end", "beginning"])
def test_odd_nights_are_no_change_until_there_are_four(odd, place):
    """One, two or three nights that are twice as slow, at any place, are no change. Four are the shortest level."""
    calm = [0.010] * 40
    at = {"middle": 20, "end": 40 - odd, "beginning": 0}[place]
    assert bool(find(noisy(calm[:at] + [0.020] * odd + calm[at + odd :]))) == (odd == MINIMUM)


def test_correlated_noise_is_rarely_called_a_change():
    """A year of nights without any change has as few alarms as the calibration says, with other seeds than its own."""
    assert sum(len(find(noisy([0.010] * 365, seed=seed))) for seed in range(40)) <= 4


@pytest.mark.parametrize("rho", [0.0, 0.3])
@pytest.mark.parametrize("since", [100, 150])
def test_runs_that_only_scatter_more_are_no_change(since, rho):
    """A machine became ten times as noisy: its runs scatter more around the same level."""
    calm, wild = (noisy([0.010] * 200, sd=sd, seed=sd * 1000 + since, rho=rho) for sd in (0.003, 0.03))
    assert find(calm[:since] + wild[since:]) == []


@pytest.mark.parametrize(
    "nights", [(-12.4, -3, -4, -19), (5.7, 28.1, 11.7, 7.5), (-16.1, -10.1, -6.3, -6), (3.8, 13.6, 14.7, 6.7)]
)
def test_the_first_nights_of_a_noisy_machine_are_no_change(nights):
    """By chance all of them lie on one side of the old level. They scatter more, which is no change of level."""
    calm = noisy([0.010] * 150, sd=0.003)
    assert find(calm + [0.010 * math.exp(0.003 * night) for night in nights]) == []


@pytest.mark.parametrize("sd", [0.005, 0.01, 0.02])
@pytest.mark.parametrize("nights", [150, 365])
def test_a_drift_is_no_step(nights, sd):
    """A tenth of a per cent a night: no run is to blame, and the series is said to be unsteady."""
    (course,) = courses([noisy([0.010 * 1.001**night for night in range(nights)], sd=sd)])
    assert course.changes == ()
    assert course.unsteady


def test_a_step_on_the_way_of_a_drift_is_still_a_step():
    """Fifteen per cent in one night, in the middle of a drift."""
    levels = [0.010 * 1.001**night * (1.15 if night >= 90 else 1) for night in range(180)]
    (step,) = find(noisy(levels, sd=0.01))
    assert step.earliest <= 90 <= step.latest
    assert step.ratio == pytest.approx(1.15, rel=0.05)


def sticky(nights, gap=1.08, stay=7, seed=4):
    """Two levels that stay for about seven nights each."""
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secret
    modes, mode = [], 0
    for _ in range(nights):
        mode = 1 - mode if chance.random() < 1 / stay else mode
        modes.append(0.010 * (gap if mode else 1))
    return modes


@pytest.mark.parametrize("sd", [0.005, 0.01])
@pytest.mark.parametrize("seed", range(4))
def test_two_modes_are_no_steps(seed, sd):
    """A machine that is quick for a week and slow for another: no commit caused that."""
    (course,) = courses([noisy(sticky(200, seed=seed), sd=sd, seed=seed)])
    assert course.changes == ()
    assert course.unsteady


def test_a_step_after_two_modes_is_still_a_step():
    """A third level, far above both."""
    (step,) = find(noisy(sticky(120) + [0.014] * 60, sd=0.01))
    assert step.earliest <= 120 <= step.latest


def test_a_step_that_the_next_one_undid_is_marked():
    """Up and back to where it was, and up and half of the way back."""
    up, back = find(noisy([0.010] * 40 + [0.012] * 20 + [0.010] * 40))
    assert up.undone_by(back)
    up, back = find(noisy([0.010] * 40 + [0.014] * 20 + [0.012] * 40))
    assert not up.undone_by(back)


def test_a_level_that_fell_to_zero_is_a_change():
    """An accuracy of exactly 0 has no logarithm."""
    (fall,) = find([0.9, 0.91] * 10 + [0.0] * 6)
    assert (fall.index, fall.ratio, fall.direction(higher_is_better=True)) == (20, 0.0, "regressed")
    (rise,) = find([0.0] * 10 + [0.9, 0.91] * 5)
    assert (rise.index, rise.ratio, rise.direction(higher_is_better=True)) == (10, None, "improved")


def test_a_level_longer_than_the_longest_stretch_is_one_level():
    """Three years of nights, once without a change and once with one."""
    assert find(noisy([0.010] * 1100)) == []
    (change,) = find(noisy([0.010] * 700 + [0.011] * 400))
    assert (change.index, change.before, change.after) == (700, 700, 400)


@given(st.lists(st.floats(-1e9, 1e9) | st.sampled_from([0.0, 1e-9]), max_size=40))
@settings(max_examples=60, deadline=None)
def test_every_level_has_at_least_four_runs(values):
    """Whatever the numbers are. Each change has a size."""
    found = find(values)
    ends = [0, *(change.index for change in found), len(values)]
    assert not found or all(end - begin >= MINIMUM for begin, end in itertools.pairwise(ends))
    assert all(math.isfinite(change.score) for change in found)
    assert all(change.ratio is None or 0 <= change.ratio < math.inf for change in found)
    assert all(0 < change.earliest <= change.latest < len(values) for change in found)
    (course,) = courses([values])
    assert [level.begin for level in course.levels[1:]] == [level.end for level in course.levels[:-1]]


def test_equal_numbers_have_no_change_and_a_step_between_them_is_reported():
    """A memory that never varies is given a floor of noise, not zero."""
    assert find([64e6] * 50) == []
    (change,) = find([64e6] * 30 + [65e6] * 20)
    assert (change.index, change.ratio) == (30, pytest.approx(65 / 64))


@pytest.mark.parametrize(
    ("ratio", "higher_is_better", "direction"),
    [
        (1.2, False, "regressed"),
        (0.8, False, "improved"),
        (1.2, True, "improved"),
        (0.8, True, "regressed"),
        (1.2, None, "changed"),
    ],
)
def test_a_direction_depends_on_the_metric(ratio, higher_is_better, direction):
    """A time that grows is worse, a throughput that grows is better, and an accuracy only changed."""
    change = ChangePoint(4, 1.0, ratio, 9.0, 4, 4, 4, 4)
    assert change.ratio == pytest.approx(ratio)
    assert change.direction(higher_is_better=higher_is_better) == direction


def test_many_series_together_have_the_changes_of_each_alone():
    """Of several lengths, more of one than are divided at once, and one that is too short."""
    levels = [[0.010] * 20 + [0.012] * 20, [0.010] * 40, [0.010] * 30, [0.010] * (2 * MINIMUM - 1), []]
    every = [noisy(levels[seed % len(levels)], seed=seed) for seed in range(TOGETHER * 3)]
    found = courses(every)
    assert found == [courses([values])[0] for values in every]
    assert any(course.changes for course in found)
