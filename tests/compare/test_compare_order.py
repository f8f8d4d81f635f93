"""The order of turns and their length: no arm has a neighbour more often than another, or an easier turn."""

import itertools
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.compare import order
from ipexperf.compare.order import ALIKE, TurnShape
from ipexperf.judge.stalls import extra_steps

SEEDS = st.integers(0, 2**32)


def cycle(arms: int, seed: int, number: int = 0) -> list[list[int]]:
    """The rotations of one cycle: as many as there are arms, or twice as many of an odd number."""
    length = 2 * arms if arms % 2 else arms
    rows = order.orders(arms, random.Random(seed))  # noqa: S311 - an order, no secret
    return list(itertools.islice(rows, number * length, (number + 1) * length))


@given(st.integers(2, 9), SEEDS, st.integers(0, 2))
def test_in_each_cycle_every_arm_follows_every_other_equally_often(arms: int, seed: int, number: int) -> None:
    """What an arm leaves in the caches affects all others alike."""
    found = Counter(neighbours for row in cycle(arms, seed, number) for neighbours in itertools.pairwise(row))
    assert found == dict.fromkeys(itertools.permutations(range(arms), 2), 2 if arms % 2 else 1)


STEPS = st.lists(st.tuples(st.floats(1e-5, 10), st.integers(1, 500)), min_size=1, max_size=8)


@given(STEPS, st.floats(0.01, 1))
def test_arms_with_similar_steps_have_equal_blocks(arms: list[tuple[float, int]], seconds: float) -> None:
    """The extra cost of the first step of a block is the same share. No block is shorter than the arm chose."""
    steps, blocks = [step for step, _ in arms], [block for _, block in arms]
    shapes = order.shapes(steps, blocks, seconds)
    for one, other in itertools.combinations(range(len(arms)), 2):
        if max(steps[one], steps[other]) <= ALIKE * min(steps[one], steps[other]):
            assert shapes[one].block == shapes[other].block
    assert all(shape.block >= block for shape, block in zip(shapes, blocks, strict=True))


@given(STEPS, st.floats(0.01, 1))
def test_a_turn_lasts_as_long_as_requested(arms: list[tuple[float, int]], seconds: float) -> None:
    """At least as long, and longer by less than a sample."""
    steps, blocks = [step for step, _ in arms], [block for _, block in arms]
    for step, shape in zip(steps, order.shapes(steps, blocks, seconds), strict=True):
        sample = step * shape.block
        assert shape.samples >= 1
        assert shape.samples * sample >= seconds * (1 - 1e-3) - 1e-5 * sample
        assert shape.samples == 1 or (shape.samples - 1) * sample <= seconds


def test_arms_with_different_steps_have_their_own_blocks() -> None:
    """A hundred steps of the slow arm in one sample would make a turn of a minute."""
    assert order.shapes([0.001, 0.0012, 0.6], [20, 30, 1], 0.05) == [
        TurnShape(2, 30),
        TurnShape(2, 30),
        TurnShape(1, 1),
    ]


@pytest.mark.parametrize(("warm", "samples"), [(1, 1), (1, 4), (3, 7), (2, 8)])
def test_a_step_that_is_slow_every_tenth_time_is_timed_as_often_as_it_happens(warm: int, samples: int) -> None:
    """With as many untimed steps in each turn, all or none would be untimed when a turn has 2, 5 or 10 steps."""
    chance, launches = random.Random(0), 100  # noqa: S311 - no secret
    seen = happened = 0
    for launch in range(launches):
        step = chance.randrange(10)  # it was warmed up before
        for extra in itertools.islice(extra_steps(launch), 16):
            untimed = warm + extra
            slow = [number % 10 == 9 for number in range(step, step + untimed + samples)]
            step += len(slow)
            happened += sum(slow)
            seen += sum(slow[untimed:])
    assert seen / happened == pytest.approx(samples / (warm + 0.5 + samples), rel=0.15)
