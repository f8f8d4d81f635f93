"""The levels of a series: where each begins, and the noise around it.

The values are divided into stretches of at least MINIMUM runs so that what is left of their spread, with a price for
each further stretch, is smallest (optimal partitioning). The price is the square of a threshold that was calibrated on
series without any change, whose neighbours are alike (AR(1), rho 0.3): `benchmarks/changepoints/calibrate.py`.

The noise of a series is that of its quieter part. So each change must then stand out from the noise around it, too:
where runs scatter more than they used to, that alone is no change of level.
"""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[Any]

MINIMUM = 4
"""The shortest stretch that is a level. Three odd nights in a row are not one."""
THRESHOLD = 6.0
"""Least size of a change in a long series, in units of the standard error of the difference of its two levels."""
FEW = 6.0
"""A series of n runs has a threshold that is higher by the factor 1 + FEW / n, because its noise is less well known."""
FLOOR = 0.002
"""Smallest noise (standard deviation of the log) that is assumed of any series."""
OUTLIER = 3.0
"""An odd run is farther than this many noises from the median of the runs around it, and is replaced by that median."""
KEPT = 0.8
"""The noise follows from the smallest steps from run to run, this share of all. A change of level is one large step."""
AROUND = 30
"""Number of runs on either side of a change that its noise is computed from."""
USUAL = 2.0
"""Weight, in steps, of the noise of the whole series when the noise beside a change is estimated."""
SCATTERED = 2.0
"""Fewer than 2 MINIMUM steps with a variance above this, relative to their series, count as a noisier stretch."""
DOUBT = 4.0
"""Factor on the variance of such a short noisy stretch, which may well underestimate it."""
STEP = 0.5586 * math.sqrt(2)
"""Mean of the KEPT smallest steps between independent normal values, in units of their standard deviation."""
LONGEST = 400
"""Longest stretch that is tried, so that time grows with the runs and not their square. Parts are joined later."""


def limit_of(runs: int) -> float:
    """The least size of a change in a series of this length, in units of its noise."""
    return THRESHOLD * (1 + FEW / runs)


def spread(logs: Floats) -> Floats:
    """The noise of each series (the last axis is its runs), from its small steps: changes of level do not count."""
    import numpy as np

    steps = np.abs(np.diff(logs))
    count = max(1, int(KEPT * steps.shape[-1]))
    smallest = np.partition(steps, count - 1)[..., :count]
    noise: Floats = np.maximum(smallest.mean(axis=-1) / STEP, FLOOR)
    return noise


def cleaned(logs: Floats) -> Floats:
    """Replace odd runs by the median of the runs around them. What lasts for MINIMUM runs is not odd."""
    import numpy as np

    width = 2 * MINIMUM - 1
    runs = logs.shape[-1]
    medians = np.median(np.lib.stride_tricks.sliding_window_view(logs, width, axis=-1), axis=-1)
    # Runs near an end have no window of their own: they use the first or the last whole one.
    around = medians[..., np.clip(np.arange(runs) - MINIMUM + 1, 0, runs - width)]
    odd = np.abs(logs - around) > OUTLIER * local_noise(logs)
    return np.where(odd, around, logs)


def in_noise(logs: Floats) -> tuple[Floats, Floats]:
    """Subtract the median and divide by the noise: once without the odd runs, and once as measured.

    The first is for levels. The second is for noise: where a series begins to scatter, most runs look odd, and without
    them there would be no noise left.
    """
    import numpy as np

    middle, noise = np.median(logs, axis=-1, keepdims=True), spread(logs)[..., np.newaxis]
    return (cleaned(logs) - middle) / noise, (logs - middle) / noise


def divided(scaled: Floats, measured: Floats, limit: float) -> list[list[int]]:
    """Return where the levels of each series (a row) begin, but for the first one, at 0.

    A change must be at least `limit` times its noise.
    """
    runs = scaled.shape[-1]
    every = []
    for values, noisy, row in zip(scaled, measured, _cheapest(scaled, limit**2), strict=True):
        starts, end = [], runs
        while (begin := int(row[end])) > 0:
            starts.append(begin)
            end = begin
        every.append(_proven(values, noisy, starts[::-1], limit))
    return every


def noise_of(values: Floats) -> float:
    """The noise of these runs in units of the noise of their series, at least 1. Changes of level do not count."""
    import numpy as np

    steps = len(values) - 1
    short = steps < 2 * MINIMUM
    # Few runs have no room for a change, and their smallest steps alone would underestimate the noise.
    variance = float(np.square(np.diff(values)).mean()) / 2 if short else float(spread(values)) ** 2
    square = (USUAL + steps * variance) / (USUAL + steps)
    return max(1.0, math.sqrt(square * DOUBT if short and square > SCATTERED else square))


def noise_beside(scaled: Floats, index: int) -> tuple[float, float]:
    """The noise of the runs before and after a place."""
    return noise_of(scaled[max(0, index - AROUND) : index]), noise_of(scaled[index : index + AROUND])


def score(scaled: Floats, measured: Floats, first: int, index: int, end: int) -> float:
    """The difference of the levels before and after `index`, in units of the noise around it."""
    before, after = scaled[first:index], scaled[index:end]
    noise = noise_beside(measured, index)
    squares = noise[0] ** 2 / len(before) + noise[1] ** 2 / len(after)
    return abs(float(after.mean() - before.mean())) / math.sqrt(squares)


def in_drifts(scaled: Floats, starts: Sequence[int], limit: float) -> set[int]:
    """The starts that are no steps: a straight line through neighbouring levels costs as little as their steps.

    A line costs as much as one step.
    """
    import numpy as np

    if not starts:
        return set()
    bounds = [0, *starts, len(scaled)]
    rests = [_rest(scaled[begin:end]) for begin, end in pairwise(bounds)]
    noise = np.maximum(1.0, local_noise(scaled) * np.ones(len(scaled))) ** 2
    drifting: set[int] = set()
    for first, last in combinations(range(len(bounds)), 2):
        begin, end = bounds[first], bounds[last]
        runs, steps = end - begin, last - first - 1
        if steps:
            rise = float((np.arange(runs) - (runs - 1) / 2) @ scaled[begin:end])
            line = _rest(scaled[begin:end]) - rise**2 / (runs * (runs**2 - 1) / 12)
            if line - sum(rests[first:last]) < limit**2 * (steps - 1) * float(noise[begin:end].mean()):
                drifting.update(bounds[first + 1 : last])
    return drifting


def _rest(values: Floats) -> float:
    """The sum of squared deviations from the mean."""
    return float(((values - values.mean()) ** 2).sum())


def local_noise(logs: Floats) -> Floats:
    """The noise around each run, at least that of its series: in a noisier stretch, noise alone makes no run odd."""
    import numpy as np

    runs = logs.shape[-1]
    least = spread(logs)[..., np.newaxis]
    if runs <= AROUND:
        return least
    windows = np.lib.stride_tricks.sliding_window_view(logs, AROUND, axis=-1)
    noise: Floats = np.maximum(spread(windows), least)
    return noise[..., np.clip(np.arange(runs) - AROUND // 2, 0, runs - AROUND)]


def _proven(scaled: Floats, measured: Floats, starts: Sequence[int], limit: float) -> list[int]:
    """Remove the starts where the levels differ by less than the limit, the weakest first."""
    bounds = [0, *starts, len(scaled)]
    while len(bounds) > 2:
        scores = [score(scaled, measured, *three) for three in zip(bounds, bounds[1:], bounds[2:], strict=False)]
        if min(scores) >= limit:
            break
        del bounds[scores.index(min(scores)) + 1]
    return bounds[1:-1]


def _cheapest(scaled: Floats, price: float) -> Floats:
    """For each row and each end, return where the last stretch of the cheapest division begins."""
    import numpy as np

    rows, runs = scaled.shape
    sums, squares = (np.pad(np.cumsum(x, axis=1), ((0, 0), (1, 0))) for x in (scaled, scaled**2))
    # The cost of the cheapest division of the first runs. Fewer than MINIMUM have none. The first stretch has no price.
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
