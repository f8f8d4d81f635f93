"""The order of turns, and their length: pure functions."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

ALIKE = 1.5
"""Arms whose step times differ by less than this factor use the same block length, so that the extra cost of a block's
first step is the same share of both."""


@dataclass(frozen=True, slots=True)
class TurnShape:
    """One turn of an arm: `warm` untimed steps, then `samples` samples of `block` steps each."""

    samples: int
    block: int
    warm: int = 0


def orders(arms: int, chance: random.Random) -> Iterator[list[int]]:
    """Yield the order of each rotation, without end. In each cycle every arm follows every other equally often.

    The rows are those of a Williams square; an odd number of arms also needs its mirror image.
    """
    zigzag = [(step + 1) // 2 if step % 2 else -(step // 2) for step in range(arms)]
    square = [[(first + shift) % arms for shift in zigzag] for first in range(arms)]
    if arms % 2:
        square += [row[::-1] for row in square]
    while True:
        names = chance.sample(range(arms), arms)
        for row in chance.sample(square, len(square)):
            yield [names[place] for place in row]


def shapes(steps: Sequence[float], blocks: Sequence[int], seconds: float) -> list[TurnShape]:
    """The shape of each arm's turns, about `seconds` long, given its step time and the block it chose for itself."""
    agreed = list(blocks)
    for group in _alike(steps):
        longest = max(blocks[arm] for arm in group)
        for arm in group:
            agreed[arm] = longest
    return [
        TurnShape(max(1, math.ceil(seconds / max(step * block, 1e-9) - 1e-6)), block)
        for step, block in zip(steps, agreed, strict=True)
    ]


def _alike(steps: Sequence[float]) -> list[list[int]]:
    """Group the arms so that sorted neighbours within a group differ by less than ALIKE."""
    ordered = sorted(range(len(steps)), key=lambda arm: steps[arm])
    groups: list[list[int]] = []
    for arm in ordered:
        if groups and steps[arm] <= ALIKE * steps[groups[-1][-1]]:
            groups[-1].append(arm)
        else:
            groups.append([arm])
    return groups
