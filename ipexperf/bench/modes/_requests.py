"""The requests of a serving case: when each arrives, how many tokens it brings, and how many it wants."""

from __future__ import annotations

import random
from dataclasses import dataclass

SHORTEST, LONGEST = 8, 2
"""A prompt has from an eighth to half of the case's size in tokens, and so has the text that is generated behind it."""
FEWEST = 2
"""Tokens that every request generates at least: the time between tokens needs two."""


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt of a text, and how many tokens to generate behind it."""

    text: int
    """The number of the request, and so of its text."""
    arrival: float
    """Seconds after the beginning of a replay at which it arrives."""
    prompt: int
    tokens: int


def planned(count: int, rate: float, size: int, seed: int) -> list[Request]:
    """Return as many requests, which arrive as a Poisson process of this rate. Equal seeds give equal requests.

    Given that exactly `count` requests of such a process arrive in `count / rate` seconds, their moments are random
    numbers in order. So the rate is the stated one, not one that the seed happened to draw.
    """
    # Only `random()` gives the same numbers in every version of Python.
    draw = random.Random(seed).random  # noqa: S311 - a plan, no secret
    arrivals = sorted(draw() * count / rate for _ in range(count))
    least, most = max(FEWEST, size // SHORTEST), size // LONGEST

    def length() -> int:
        return least + int(draw() * (most - least + 1))

    return [Request(text, arrival, length(), length()) for text, arrival in enumerate(arrivals)]
