"""The levels of a series: where each begins, and the noise around it.

The values are divided into stretches of at least MINIMUM runs so that what is left of their spread, with a price for
each further stretch, is smallest (optimal partitioning). The price is the square of a threshold that was calibrated on
series without any change, whose neighbours are alike (AR(1), rho 0.3): `benchmarks/changepoints/calibrate.py`.

The noise of a series is that of its quieter part. So each change must then stand out from the noise around it, too:
where runs scatter more than they used to, that alone is no change of level.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[Any]

MINIMUM = 4
"""The shortest stretch that is a level: three odd nights in a row are no change."""
THRESHOLD = 6.0
"""A change must be so many times the noise of the difference of its two levels, in a long series."""
FEW = 6.0
"""In a series of n runs the threshold is higher by the factor 1 + FEW / n: the noise is known less well."""
FLOOR = 0.002
"""No series is believed to have less noise than this log sd, however alike its runs look."""
OUTLIER = 3.0
"""A run so many times the noise away from the median of the runs around it is replaced by that median."""
KEPT = 0.8
"""The noise is computed from this share of the steps from run to run, the smallest: a change is a single large one."""
AROUND = 30
"""The noise on either side of a change is that of so many runs."""
USUAL = 2.0
"""It is shrunk to that of the series, as if that were known from so many steps."""
SCATTERED = 2.0
"""A few runs whose squared noise is above this, in units of that of their series, scatter more than they used to."""
DOUBT = 4.0
"""So few runs say little of how much more: their squared noise is taken to be so many times as large."""
STEP = 0.5586 * math.sqrt(2)
"""The mean of that share of the steps between independent normal values, in units of their sd."""
LONGEST = 400
"""Longer levels are divided in parts, which are joined afterwards: the time grows with the runs, not their square."""


def limit_of(runs: int, threshold: float = THRESHOLD, few: float = FEW) -> float:
    """How many times its noise a change must be in a series of so many runs."""
    return threshold * (1 + few / runs)


def spread(logs: Floats) -> Floats:
    """The noise of each series (the last axis is its runs), from its small steps: no change of level is one."""
    import numpy as np

    steps = np.abs(np.diff(logs))
    count = max(1, int(KEPT * steps.shape[-1]))
    smallest = np.partition(steps, count - 1)[..., :count]
    noise: Floats = np.maximum(smallest.mean(axis=-1) / STEP, FLOOR)
    return noise


def cleaned(logs: Floats) -> Floats:
    """Each series with its odd runs at the level of those around them; what lasts for MINIMUM runs is not odd."""
    import numpy as np

    width = 2 * MINIMUM - 1
    runs = logs.shape[-1]
    medians = np.median(np.lib.stride_tricks.sliding_window_view(logs, width, axis=-1), axis=-1)
    # At both ends the first and the last window that are whole stand for the runs that have none of their own.
    around = medians[..., np.clip(np.arange(runs) - MINIMUM + 1, 0, runs - width)]
    odd = np.abs(logs - around) > OUTLIER * local_noise(logs)
    return np.where(odd, around, logs)


def in_noise(logs: Floats) -> tuple[Floats, Floats]:
    """Each series from its median, in units of its noise: without its odd runs, and as it was measured.

    Levels are those without odd runs. Noise is that of what was measured: where a series begins to scatter, most runs
    look odd, and without them there would be no noise left.
    """
    import numpy as np

    middle, noise = np.median(logs, axis=-1, keepdims=True), spread(logs)[..., np.newaxis]
    return (cleaned(logs) - middle) / noise, (logs - middle) / noise


def divide(logs: Floats, threshold: float = THRESHOLD, few: float = FEW) -> list[list[int]]:
    """Where the levels of each series (a row) begin, without the first, which begins at 0."""
    return divided(*in_noise(logs), limit_of(logs.shape[-1], threshold, few))


def divided(scaled: Floats, measured: Floats, limit: float) -> list[list[int]]:
    """Where the levels of each series begin, if a change must be `limit` times its noise."""
    runs = scaled.shape[-1]
    every = []
    for values, noisy, row in zip(scaled, measured, _cheapest(scaled, limit**2), strict=True):
        starts, end = [], runs
        while (begin := int(row[end])) > 0:
            starts.append(begin)
            end = begin
        every.append(_proven(values, noisy, starts[::-1], limit))
    return every


def noise_of(some: Floats) -> float:
    """The noise of some runs in units of that of their series, and at least that. A change of level is none."""
    import numpy as np

    steps = len(some) - 1
    few = steps < 2 * MINIMUM
    # Of few runs the smallest steps are much too small, and a change among them has no room.
    own = float(np.square(np.diff(some)).mean()) / 2 if few else float(spread(some)) ** 2
    square = (USUAL + steps * own) / (USUAL + steps)
    return max(1.0, math.sqrt(square * DOUBT if few and square > SCATTERED else square))


def noise_beside(scaled: Floats, index: int) -> tuple[float, float]:
    """The noise of the runs before and after a place."""
    return noise_of(scaled[max(0, index - AROUND) : index]), noise_of(scaled[index : index + AROUND])


def score(
    scaled: Floats, measured: Floats, first: int, index: int, end: int, weights: tuple[float, float] = (1.0, 1.0)
) -> float:
    """How many times the noise around it the difference of the levels before and after `index` is.

    A weight is the share of its runs that a level counts as.
    """
    before, after = scaled[first:index], scaled[index:end]
    noise = noise_beside(measured, index)
    squares = noise[0] ** 2 / (weights[0] * len(before)) + noise[1] ** 2 / (weights[1] * len(after))
    return abs(float(after.mean() - before.mean())) / math.sqrt(squares)


def local_noise(logs: Floats) -> Floats:
    """The noise around each run, at least that of its series: where runs scatter more, none of them is odd for that."""
    import numpy as np

    runs = logs.shape[-1]
    least = spread(logs)[..., np.newaxis]
    if runs <= AROUND:
        return least
    windows = np.lib.stride_tricks.sliding_window_view(logs, AROUND, axis=-1)
    noise: Floats = np.maximum(spread(windows), least)
    return noise[..., np.clip(np.arange(runs) - AROUND // 2, 0, runs - AROUND)]


def _proven(scaled: Floats, measured: Floats, starts: Sequence[int], limit: float) -> list[int]:
    """The starts at which the levels differ by the limit in their own noise. The weakest is taken away first."""
    bounds = [0, *starts, len(scaled)]
    scores = [score(scaled, measured, *three) for three in zip(bounds, bounds[1:], bounds[2:], strict=False)]
    while scores and min(scores) < limit:
        weakest = scores.index(min(scores))
        del bounds[weakest + 1], scores[weakest]
        # Only the levels beside it have changed.
        for beside in {max(0, weakest - 1), weakest} & set(range(len(scores))):
            first, index, end = bounds[beside : beside + 3]
            scores[beside] = score(scaled, measured, first, index, end)
    return bounds[1:-1]


def _cheapest(scaled: Floats, price: float) -> Floats:
    """For each row and each end, where the last stretch of the cheapest division begins."""
    import numpy as np

    rows, runs = scaled.shape
    sums, squares = (np.pad(np.cumsum(x, axis=1), ((0, 0), (1, 0))) for x in (scaled, scaled**2))
    # What a division of the first runs costs; before MINIMUM runs there is none, and the first stretch is free.
    cost = np.full((rows, runs + 1), np.inf)
    cost[:, 0] = -price
    begin = np.zeros((rows, runs + 1), dtype=int)
    each = np.arange(rows)
    for end in range(MINIMUM, runs + 1):
        first, last = max(0, end - LONGEST), end - MINIMUM + 1
        sizes = end - np.arange(first, last)
        rest = squares[:, end : end + 1] - squares[:, first:last]
        rest -= (sums[:, end : end + 1] - sums[:, first:last]) ** 2 / sizes
        total = cost[:, first:last] + rest + price
        begin[:, end] = first + total.argmin(axis=1)
        cost[:, end] = total[each, begin[:, end] - first]
    return begin
