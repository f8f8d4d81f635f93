"""Change points of one series: where its level moved, and stayed there for some runs.

The values are divided into stretches of at least MINIMUM runs so that what is left of their spread, with a price for
each further stretch, is smallest (optimal partitioning). The price is the square of a threshold that was calibrated on
series without any change, whose neighbours are alike (AR(1), rho 0.3): `benchmarks/changepoints/calibrate.py`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

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
"""A run so many times the noise away from the median of the runs around it is taken for that median."""
KEPT = 0.8
"""The noise is told by this share of the steps from run to run, the smallest: a change is a single large one."""
STEP = 0.5586 * math.sqrt(2)
"""The mean of that share of the steps between independent normal values, in units of their sd."""
TOGETHER = 64
"""So many series are divided at once: their sums fit into a processor's cache."""

Direction = Literal["regressed", "improved", "changed"]


@dataclass(frozen=True, slots=True)
class Change:
    """A level that moved: `index` is the first run of the new one, `ratio` the new level over the old.

    `score` is how many times the noise the difference is; `before` and `after` are the runs of the two levels.
    """

    index: int
    ratio: float
    score: float
    before: int
    after: int

    def direction(self, *, higher_is_better: bool | None) -> Direction:
        """Which way it went, for a metric of which one way is good."""
        if higher_is_better is None:
            return "changed"
        return "improved" if (self.ratio > 1) == higher_is_better else "regressed"


def find(values: Sequence[float]) -> list[Change]:
    """The changes of a series of numbers above 0, oldest first: one number a run, the median of its launches."""
    return find_each([values])[0]


def find_each(series: Sequence[Sequence[float]]) -> list[list[Change]]:
    """The changes of each of many series. Those of one length are divided together, which is much quicker."""
    import numpy as np

    if not all(0 < value < math.inf for values in series for value in values):
        raise ValueError("expected finite numbers above 0")
    by_series: list[list[Change]] = [[] for _ in series]
    lengths: dict[int, list[int]] = defaultdict(list)
    for place, values in enumerate(series):
        if len(values) >= 2 * MINIMUM:
            lengths[len(values)].append(place)
    for places in lengths.values():
        for first in range(0, len(places), TOGETHER):
            some = places[first : first + TOGETHER]
            logs = np.log(np.asarray([series[place] for place in some], dtype=float))
            for place, changes in zip(some, _changes(logs), strict=True):
                by_series[place] = changes
    return by_series


def _changes(logs: Floats) -> list[list[Change]]:
    """The changes of some series of one length, each a row."""
    quiet, noise = cleaned(logs), spread(logs)
    return [
        _reported(row, calm, float(level), starts)
        for row, calm, level, starts in zip(logs, quiet, noise, divide(logs), strict=True)
    ]


def _reported(logs: Floats, quiet: Floats, noise: float, starts: Sequence[int]) -> list[Change]:
    import numpy as np

    bounds = [0, *starts, len(logs)]
    changes = []
    for first, index, end in zip(bounds, bounds[1:], bounds[2:], strict=False):
        sides = quiet[first:index], quiet[index:end]
        difference = abs(float(sides[1].mean() - sides[0].mean()))
        score = difference / (noise * math.sqrt(1 / len(sides[0]) + 1 / len(sides[1])))
        # The levels are medians of what was measured, so that no odd run moves them.
        ratio = math.exp(float(np.median(logs[index:end]) - np.median(logs[first:index])))
        changes.append(Change(index, ratio, score, index - first, end - index))
    return changes


def spread(logs: Floats) -> Floats:
    """The noise of each series (the last axis is its runs), told by its small steps: no change of level is one."""
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
    odd = np.abs(logs - around) > OUTLIER * spread(logs)[..., np.newaxis]
    return np.where(odd, around, logs)


def divide(logs: Floats, threshold: float = THRESHOLD, few: float = FEW) -> list[list[int]]:
    """Where the stretches of each series (a row) begin, without the first, which begins at 0."""
    import numpy as np

    runs = logs.shape[-1]
    scaled = (cleaned(logs) - np.median(logs, axis=-1, keepdims=True)) / spread(logs)[..., np.newaxis]
    beginnings = _cheapest(scaled, (threshold * (1 + few / runs)) ** 2)
    divided = []
    for row in beginnings:
        starts, end = [], runs
        while (begin := int(row[end])) > 0:
            starts.append(begin)
            end = begin
        divided.append(starts[::-1])
    return divided


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
        last = end - MINIMUM + 1
        sizes = end - np.arange(last)
        rest = squares[:, end : end + 1] - squares[:, :last] - (sums[:, end : end + 1] - sums[:, :last]) ** 2 / sizes
        total = cost[:, :last] + rest + price
        begin[:, end] = total.argmin(axis=1)
        cost[:, end] = total[each, begin[:, end]]
    return begin
