"""Steps that grow slower or faster while a launch runs: such a step time depends on how long was measured."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ipexperf.result import Measurement

LEAST = 12
"""Launches with fewer samples have too few at their ends to compare."""
FACTOR = 1.2
SURE = 0.9
"""So many pairs of a sample of the first third and one of the last must have the direction of the drift."""


def drift(measurement: Measurement) -> float | None:
    """Return how many times as long steps take at the end of a launch as at its beginning, if they drift.

    They do if it is far from 1 in every launch, of two or more, and in the same direction. What disturbs a machine for
    a moment does not hit all launches in the same third.
    """
    found = [_of_launch([sample.wall for sample in launch.samples]) for launch in measurement.counted]
    factors = [factor for factor in found if factor is not None]
    if len(factors) < max(2, len(found)):
        return None
    return statistics.median(factors) if min(factors) > 1 or max(factors) < 1 else None


def _of_launch(walls: Sequence[float]) -> float | None:
    third = len(walls) // 3
    if len(walls) < LEAST or min(walls) <= 0:
        return None
    first, last = walls[:third], walls[-third:]
    factor = statistics.median(last) / statistics.median(first)
    slower = sum(late > early for early in first for late in last) / third**2
    drifts = (factor >= FACTOR and slower >= SURE) or (factor <= 1 / FACTOR and slower <= 1 - SURE)
    return factor if drifts else None
