"""Change points of one series: where its level moved, and stayed there for some runs.

The values are divided into stretches of at least MINIMUM runs so that what is left of their spread, with a price for
each further stretch, is smallest (optimal partitioning). The price is the square of a threshold that was calibrated on
series without any change, whose neighbours are alike (AR(1), rho 0.3): `benchmarks/changepoints/calibrate.py`.

The noise of a series is that of its quieter part. So each change must then stand out from the noise around it, too:
where runs scatter more than they used to, that alone is no change of level.
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
LARGEST = 690.0
"""No log ratio is reported above this: its number would be infinite."""
SURE = 9.0
"""A place of a change may cost so much more than the best one, in squares of the noise, to be in its range."""
AROUND = 30
"""The noise on either side of a change is that of so many runs."""
USUAL = 2.0
"""It is shrunk to that of the series, as if that were known from so many steps."""
STEP = 0.5586 * math.sqrt(2)
"""The mean of that share of the steps between independent normal values, in units of their sd."""
TOGETHER = 64
"""So many series are divided at once: their sums fit into a processor's cache."""

Direction = Literal["regressed", "improved", "changed"]


@dataclass(frozen=True, slots=True)
class Change:
    """A level that moved: `index` is the first run of the new one, `ratio` the new level over the old.

    `score` is how many times the noise around it the difference is; `before` and `after` are the runs of its levels.
    """

    index: int
    ratio: float
    score: float
    before: int
    after: int
    earliest: int
    latest: int
    """The new level began with one of the runs from `earliest` to `latest`: 95 % of such ranges hold it."""

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
    return [_reported(row, calm, starts) for row, calm, starts in zip(logs, _in_noise(logs), divide(logs), strict=True)]


def _reported(logs: Floats, scaled: Floats, starts: Sequence[int]) -> list[Change]:
    import numpy as np

    bounds = [0, *starts, len(logs)]
    changes = []
    for first, index, end in zip(bounds, bounds[1:], bounds[2:], strict=False):
        score = _score(scaled, first, index, end)
        # The levels are medians of what was measured, so that no odd run moves them.
        moved = float(np.median(logs[index:end]) - np.median(logs[first:index]))
        ratio = math.exp(max(-LARGEST, min(moved, LARGEST)))
        changes.append(Change(index, ratio, score, index - first, end - index, *_range(scaled, first, index, end)))
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
    odd = np.abs(logs - around) > OUTLIER * _local(logs)
    return np.where(odd, around, logs)


def _local(logs: Floats) -> Floats:
    """The noise around each run, at least that of its series: where runs scatter more, none of them is odd for that."""
    import numpy as np

    runs = logs.shape[-1]
    least = spread(logs)[..., np.newaxis]
    if runs <= AROUND:
        return least
    windows = np.lib.stride_tricks.sliding_window_view(logs, AROUND, axis=-1)
    noise: Floats = np.maximum(spread(windows), least)
    return noise[..., np.clip(np.arange(runs) - AROUND // 2, 0, runs - AROUND)]


def divide(logs: Floats, threshold: float = THRESHOLD, few: float = FEW) -> list[list[int]]:
    """Where the stretches of each series (a row) begin, without the first, which begins at 0."""
    runs = logs.shape[-1]
    scaled = _in_noise(logs)
    limit = threshold * (1 + few / runs)
    beginnings = _cheapest(scaled, limit**2)
    divided = []
    for values, row in zip(scaled, beginnings, strict=True):
        starts, end = [], runs
        while (begin := int(row[end])) > 0:
            starts.append(begin)
            end = begin
        divided.append(_proven(values, starts[::-1], limit))
    return divided


def _in_noise(logs: Floats) -> Floats:
    """Each series without its odd runs, from its median, in units of its noise."""
    import numpy as np

    scaled: Floats = (cleaned(logs) - np.median(logs, axis=-1, keepdims=True)) / spread(logs)[..., np.newaxis]
    return scaled


def _proven(scaled: Floats, starts: list[int], limit: float) -> list[int]:
    """The starts at which the levels differ by the limit in their own noise. The weakest is taken away first."""
    while starts:
        bounds = [0, *starts, len(scaled)]
        scores = [_score(scaled, *three) for three in zip(bounds, bounds[1:], bounds[2:], strict=False)]
        if min(scores) >= limit:
            break
        del starts[scores.index(min(scores))]
    return starts


def _score(scaled: Floats, first: int, index: int, end: int) -> float:
    """How many times the noise around it the difference of the levels before and after `index` is."""
    before, after = scaled[first:index], scaled[index:end]
    noise = (_noise(scaled[max(0, index - AROUND) : index]), _noise(scaled[index : index + AROUND]))
    squares = noise[0] ** 2 / len(before) + noise[1] ** 2 / len(after)
    return abs(float(after.mean() - before.mean())) / math.sqrt(squares)


def _range(scaled: Floats, first: int, index: int, end: int) -> tuple[int, int]:
    """The earliest and the latest run with which the new level may have begun, where that costs little more."""
    import numpy as np

    noise = max(_noise(scaled[max(0, index - AROUND) : index]), _noise(scaled[index : index + AROUND]))
    sums = np.cumsum(scaled[first:end])
    sizes = np.arange(1, end - first)
    # What a division explains: the more, the better.
    explained = sums[:-1] ** 2 / sizes + (sums[-1] - sums[:-1]) ** 2 / (end - first - sizes)
    likely = np.flatnonzero(explained >= explained[index - first - 1] - SURE * noise**2)
    return first + 1 + int(likely[0]), first + 1 + int(likely[-1])


def _noise(some: Floats) -> float:
    """The noise of some runs in units of that of their series, and at least that. A change of level is none."""
    steps = len(some) - 1
    return max(1.0, math.sqrt((USUAL + steps * float(spread(some)) ** 2) / (USUAL + steps)))


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
