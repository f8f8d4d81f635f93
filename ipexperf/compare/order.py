"""The order of turns, and their length: pure functions."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SAMPLE_SECONDS = 0.02
"""A sample lasts at least this long: shorter steps are timed in blocks, or the timer and its neighbours show."""
ALIKE = 1.5
"""Arms whose steps differ by less than this factor have samples of one length: what a block's first step costs is then
the same share of both."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What one turn of an arm is: `warm` steps that are forgotten, then so many samples of `block` steps."""

    samples: int
    block: int
    warm: int = 0


def orders(arms: int, chance: random.Random) -> Iterator[list[int]]:
    """The order of each rotation, for ever: random, and in each cycle every arm follows every other equally often.

    The rows are those of a Williams square, for an odd number of arms with its mirror image.
    """
    zigzag = [(step + 1) // 2 if step % 2 else -(step // 2) for step in range(arms)]
    square = [[(first + shift) % arms for shift in zigzag] for first in range(arms)]
    if arms % 2:
        square += [row[::-1] for row in square]
    while True:
        names = chance.sample(range(arms), arms)
        for row in chance.sample(square, len(square)):
            yield [names[place] for place in row]


def shapes(steps: Sequence[float], blocks: Sequence[int], seconds: float) -> list[Shape]:
    """The turn of each arm, from the seconds of its steps and the block that it chose: about so many seconds long."""
    agreed = list(blocks)
    for group in _alike(steps):
        longest = max(blocks[arm] for arm in group)
        for arm in group:
            agreed[arm] = longest
    return [
        Shape(max(1, math.ceil(seconds / max(step * block, 1e-9) - 1e-6)), block)
        for step, block in zip(steps, agreed, strict=True)
    ]


def _alike(steps: Sequence[float]) -> list[list[int]]:
    """The arms in groups within which neighbours in length differ by little."""
    ordered = sorted(range(len(steps)), key=lambda arm: steps[arm])
    groups: list[list[int]] = []
    for arm in ordered:
        if groups and steps[arm] <= ALIKE * steps[groups[-1][-1]]:
            groups[-1].append(arm)
        else:
            groups.append([arm])
    return groups
