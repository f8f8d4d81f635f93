"""Neighbouring levels that are no steps: a drift, or two modes between which a series goes to and fro.

The levels of a series are steps only as long as nothing simpler explains its runs as well. A straight line costs as
much as one step, and two modes as much as two, with a little for each switch.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

from ipexperf.judge.levels import AROUND, MINIMUM, local_noise, noise_beside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipexperf.judge.levels import Floats

Shape = Literal["level", "drift", "bistable"]
SWITCHES = 4
"""Least number of switches of a series that is said to have two modes."""
MODES = 2.0
"""Price of two modes, in steps."""
SWITCH = 0.2
"""Price of each switch between them, in steps."""
WIDEST = 80
"""Most levels that one drift or one pair of modes replaces."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The runs from `begin` to before `end`, and their shape. Numbers are in units of the series' noise.

    A level has equal `first` and `last`; a drift goes from `first` to `last`; two modes have `first` below `last`.
    """

    shape: Shape
    begin: int
    end: int
    first: float
    last: float
    known_run: int
    """The run with which a drift or two modes could first be reported."""
    switches: tuple[int, ...] = ()
    """The runs with which a series switched from one mode to the other."""


def stretches(scaled: Floats, starts: Sequence[int], limit: float) -> list[Stretch]:
    """Divide a series whose levels begin at `starts` into levels, drifts and pairs of modes."""
    bounds = [0, *starts, len(scaled)]
    chosen: list[Stretch] = []
    for _, stretch in sorted(_unsteady(scaled, bounds, limit), key=lambda saving: -saving[0]):
        if all(stretch.end <= other.begin or other.end <= stretch.begin for other in chosen):
            chosen.append(stretch)
    covered = {start for stretch in chosen for start in bounds if stretch.begin <= start < stretch.end}
    for begin, end in pairwise(bounds):
        if begin not in covered:
            level = float(scaled[begin:end].mean())
            chosen.append(Stretch("level", begin, end, level, level, begin + MINIMUM - 1))
    return sorted(chosen, key=lambda stretch: stretch.begin)


def joined(scaled: Floats, old: Stretch, new: Stretch, limit: float) -> bool:
    """Whether a drift and its neighbour, a level or a drift, meet without a step.

    They may meet some runs away, because a drift is said to begin where its first level does.
    """
    import numpy as np

    first, index, end = old.begin, new.begin, new.end
    values = scaled[first:end]
    square = sum(noise**2 for noise in noise_beside(scaled, index)) / 2
    apart = sum(float(np.square(scaled[stretch.begin : stretch.end] - line(stretch)).sum()) for stretch in (old, new))
    runs = np.arange(first, end)
    deviations = []
    for place in range(max(first + 1, index - AROUND), min(end - 1, index + AROUND)):
        columns = [np.ones(len(runs))]
        columns += [np.minimum(runs - place, 0)] if old.shape == "drift" else []
        columns += [np.maximum(runs - place, 0)] if new.shape == "drift" else []
        design = np.column_stack(columns)
        fitted = design @ np.linalg.lstsq(design, values, rcond=None)[0]
        deviations.append(float(np.square(values - fitted).sum()))
    return min(deviations) <= apart + limit**2 * square


def line(part: Stretch) -> Floats:
    """The values of a level or a drift at each of its runs."""
    import numpy as np

    return np.linspace(part.first, part.last, part.end - part.begin)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Running sums of a series: the sum over a stretch is the difference of two of them."""

    scaled: Floats
    values: Floats
    squares: Floats
    placed: Floats
    """Sums of each value times its index."""
    noise: Floats
    """Sums of the squared noise around each run."""

    @classmethod
    def of(cls, scaled: Floats) -> _Sums:
        import numpy as np

        places = np.arange(len(scaled))
        noise = np.maximum(1.0, local_noise(scaled) * np.ones(len(scaled)))
        columns = (scaled, scaled**2, scaled * places, noise**2)
        return cls(scaled, *(np.concatenate(([0.0], np.cumsum(column))) for column in columns))

    def square(self, begin: int, end: int) -> float:
        """The mean squared noise of a stretch."""
        return float(self.noise[end] - self.noise[begin]) / (end - begin)

    def deviations(self, begin: int, end: int) -> float:
        """The sum of squared deviations from the mean of a stretch."""
        total = float(self.values[end] - self.values[begin])
        return float(self.squares[end] - self.squares[begin]) - total**2 / (end - begin)

    def slope(self, begin: int, end: int) -> float:
        """The slope of the straight line through a stretch, for each run."""
        runs = end - begin
        total = float(self.values[end] - self.values[begin])
        placed = float(self.placed[end] - self.placed[begin]) - (begin + (runs - 1) / 2) * total
        return placed / _leverage(runs)

    def mean(self, begin: int, end: int) -> float:
        return float(self.values[end] - self.values[begin]) / (end - begin)


@dataclass(frozen=True, slots=True)
class _Steps:
    """Neighbouring levels with steps between them: their bounds, and the squared deviations from the levels."""

    bounds: Sequence[int]
    deviations: float
    limit: float

    def cost(self, square: float) -> float:
        """The squared deviations in units of the noise, plus the price of each step."""
        return self.deviations / square + self.limit**2 * (len(self.bounds) - 2)


_Saving: TypeAlias = tuple[float, Stretch]
"""What a line or two modes save of the cost of the levels that they explain as well."""


def _unsteady(scaled: Floats, bounds: Sequence[int], limit: float) -> list[_Saving]:
    """Neighbouring levels that a drift or two modes explain. Of two that overlap, the better one is among them."""
    if len(bounds) == 2:
        return []
    sums = _Sums.of(scaled)
    running = [0.0, *accumulate(sums.deviations(*level) for level in pairwise(bounds))]
    found: list[_Saving] = []
    for levels in range(min(WIDEST, len(bounds) - 1), 1, -1):
        for first in range(len(bounds) - levels):
            steps = _Steps(bounds[first : first + levels + 1], running[first + levels] - running[first], limit)
            begin, end = steps.bounds[0], steps.bounds[-1]
            meets = (saved for saved, other in found if other.begin < end and begin < other.end)
            least_saving = max(meets, default=0.0)
            found += [one for one in (_drift(sums, steps, least_saving), _modes(sums, steps, least_saving)) if one]
    return found


def _drift(sums: _Sums, steps: _Steps, least_saving: float) -> _Saving | None:
    """Replace these levels by a straight line. None if that saves no more than `least_saving`."""
    begin, end = steps.bounds[0], steps.bounds[-1]
    square, slope, runs = sums.square(begin, end), sums.slope(begin, end), end - begin
    deviations = sums.deviations(begin, end) - slope**2 * _leverage(runs)
    saved = steps.cost(square) - deviations / square - steps.limit**2
    if saved <= least_saving:
        return None
    half = slope * (runs - 1) / 2
    middle = sums.mean(begin, end)
    first, last = middle - half, middle + half
    return saved, Stretch(
        "drift", begin, end, first, last, _drift_known_run(begin, end, last - first, steps.limit, square)
    )


def _modes(sums: _Sums, steps: _Steps, least_saving: float) -> _Saving | None:
    """Replace these levels by two modes. None if that saves no more than `least_saving`."""
    begin, end = steps.bounds[0], steps.bounds[-1]
    square, price = sums.square(begin, end), SWITCH * steps.limit**2
    values = sums.scaled[begin:end]
    low, high = _two_centres(values)
    costs = _beside(values, low, high) / square
    spare = steps.cost(square) - MODES * steps.limit**2 - least_saving
    if float(costs.min(axis=1).sum()) + price * SWITCHES >= spare:
        return None
    path = _likeliest_modes(costs, price)
    switches = [place for place, pair in enumerate(pairwise(path), 1) if pair[0] != pair[1]]
    deviations = sum(float(pair[mode]) for pair, mode in zip(costs, path, strict=True)) + price * len(switches)
    if len(switches) < SWITCHES or deviations >= spare:
        return None
    moved = tuple(begin + place for place in switches)
    known_run = min(end, moved[SWITCHES - 1] + MINIMUM) - 1
    return least_saving + spare - deviations, Stretch("bistable", begin, end, low, high, known_run, moved)


def _two_centres(values: Floats) -> tuple[float, float]:
    """The two centres with the smallest sum of squared distances (2-means in one dimension)."""
    import numpy as np

    ordered = np.sort(values)
    sums, runs = np.cumsum(ordered), np.arange(1, len(ordered) + 1)
    lower, upper = sums[:-1] / runs[:-1], (sums[-1] - sums[:-1]) / (runs[-1] - runs[:-1])
    best = int((lower * sums[:-1] + upper * (sums[-1] - sums[:-1])).argmax())
    return float(lower[best]), float(upper[best])


def _beside(values: Floats, low: float, high: float) -> Floats:
    """The squared distances of each run to both modes."""
    import numpy as np

    return np.stack((np.square(values - low), np.square(values - high)), axis=1)


def _likeliest_modes(costs: Floats, price: float) -> list[int]:
    """The cheapest sequence of modes, 0 or 1 for each run, where each switch has a price (Viterbi's algorithm)."""
    totals, came = (0.0, 0.0), []
    for low, high in costs.tolist():
        from_low, from_high = totals
        came.append((0 if from_low <= from_high + price else 1, 1 if from_high <= from_low + price else 0))
        totals = (min(from_low, from_high + price) + low, min(from_high, from_low + price) + high)
    mode = 0 if totals[0] <= totals[1] else 1
    path = [mode]
    for pair in came[:0:-1]:
        mode = pair[mode]
        path.append(mode)
    return path[::-1]


def _drift_known_run(begin: int, end: int, rise: float, limit: float, square: float) -> int:
    """The first run with which a drift of this slope is as large as a step must be."""
    slope = rise / (end - begin - 1)
    fewer = range(2 * MINIMUM, end - begin)
    runs = 2 * MINIMUM + bisect_left(fewer, limit**2 * square, key=lambda runs: slope**2 * _leverage(runs))
    return begin + runs - 1


def _leverage(runs: int) -> float:
    """The sum of squared distances of the indexes of `runs` runs from their mean."""
    return runs * (runs**2 - 1) / 12
