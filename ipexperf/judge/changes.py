"""Change points of one series: where its level moved and stayed, where it drifts, and where it has two modes.

`levels` divides the runs, and `shapes` tells steps from drifts and modes. Here is said where a step may lie: each place
at which the new level may have begun gets a probability, of how well two levels that meet there explain the runs, if
neighbours are as alike as they are in this series (AR(1)). The range grows from the likeliest place until it holds
enough. How often it is right: `benchmarks/changepoints/shapes.py`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from ipexperf.judge import shapes
from ipexperf.judge.levels import AROUND, MINIMUM, divided, in_noise, limit_of, noise_beside, noise_of, score, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipexperf.judge.levels import Floats
    from ipexperf.judge.shapes import Stretch

LARGEST = 690.0
"""Largest log ratio that is reported. The ratio of a larger one would be infinite."""
FARTHEST = 1e6
"""Largest number, relative to the usual one of its series, where no logarithm can be taken."""
TOGETHER = 64
"""Number of series that are divided together, so that their sums fit into a processor's cache."""
BACK = 0.25
"""Largest share of a step that may be left after the next one has undone it."""
SURE = 0.92
"""Least probability of a range. A range ends at a whole run and so has more: 95 % of such ranges are right."""
USUAL_RHO = 0.3
"""Correlation of neighbouring runs that is assumed of a series with few runs."""
WEIGHT = 30.0
"""Weight, in runs, of that assumption."""
MOST = 0.9

Kind = Literal["step", "drift", "bistable"]
Direction = Literal["regressed", "improved", "changed"]


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A level that moved: `index` is the first run of the new one, `old` and `new` the levels.

    `score` is the difference in units of the noise around it; `before` and `after` count the runs of its levels.
    A drift goes from `old` to `new`, from run `index` to the last of its `after` runs. Of two modes `old` is the lower,
    with `before` runs, and `new` the upper, with `after` runs.
    """

    index: int
    old: float
    new: float
    score: float
    before: int
    after: int
    earliest: int
    latest: int
    """The new level began with one of the runs from `earliest` to `latest`: 95 % of such ranges hold it.

    A drift or two modes begin with the run before `earliest` and last to `latest`."""
    known_run: int
    """The run with which it could first be reported."""
    kind: Kind = "step"
    switches: int = 0
    """How often a series with two modes went from one to the other."""

    @property
    def ratio(self) -> float | None:
        """The new level over the old, or None if one is below 0 or the old one is 0."""
        if self.old <= 0 or self.new < 0:
            return None
        if self.new == 0:
            return 0.0
        return math.exp(max(-LARGEST, min(math.log(self.new) - math.log(self.old), LARGEST)))

    @property
    def up(self) -> bool:
        """Whether the new level is higher."""
        return self.new > self.old

    def direction(self, *, higher_is_better: bool | None) -> Direction:
        """Return whether the change is for the better or worse. Two modes are neither."""
        if higher_is_better is None or self.kind == "bistable":
            return "changed"
        return "improved" if self.up == higher_is_better else "regressed"

    def undone_by(self, later: ChangePoint) -> bool:
        """Whether the next step of the same series returned to the old level."""
        neighbours = self.kind == later.kind == "step" and later.index - later.before == self.index
        return neighbours and abs(later.new - self.old) <= BACK * abs(self.new - self.old)


@dataclass(frozen=True, slots=True)
class Course:
    """The changes of a series, oldest first, and what its runs are divided into. A short one has none."""

    changes: tuple[ChangePoint, ...] = ()
    pieces: tuple[Stretch, ...] = ()
    """Their first and last, or lower and upper, numbers are in the unit of the series."""


def find(values: Sequence[float]) -> list[ChangePoint]:
    """The changes of a series of finite numbers, oldest first: one number a run, the median of its launches."""
    return find_each([values])[0]


def find_each(series: Sequence[Sequence[float]]) -> list[list[ChangePoint]]:
    """The changes of each of many series."""
    return [list(course.changes) for course in courses(series)]


def courses(series: Sequence[Sequence[float]]) -> list[Course]:
    """The course of each series of finite numbers. Those of one length are divided together, which is much quicker."""
    import numpy as np

    every = [Course()] * len(series)
    lengths: dict[int, list[int]] = defaultdict(list)
    for place, values in enumerate(series):
        if len(values) >= 2 * MINIMUM:
            lengths[len(values)].append(place)
    for runs, places in lengths.items():
        limit = limit_of(runs)
        for first in range(0, len(places), TOGETHER):
            some = places[first : first + TOGETHER]
            scales = [_Scale.of(series[place]) for place in some]
            rows = np.stack([scale.places(series[place]) for scale, place in zip(scales, some, strict=True)])
            scaled, measured = in_noise(rows)
            for index, (place, starts) in enumerate(zip(some, divided(scaled, measured, limit), strict=True)):
                both = scaled[index], measured[index]
                course = _Series(series[place], *both, scales[index], _unit(rows[index]), limit, starts)
                every[place] = course.course()
    return every


@dataclass(frozen=True, slots=True)
class _Scale:
    """The scale of a series: logarithms, or units of the usual number (`size`) if any number is 0 or less."""

    size: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> _Scale:
        if all(value > 0 for value in values):
            return cls(None)
        return cls(_median([abs(value) for value in values if value != 0] or [1.0]))

    def places(self, values: Sequence[float]) -> Floats:
        import numpy as np

        numbers = np.asarray(values, dtype=float)
        if self.size is None:
            logs: Floats = np.log(numbers)
            return logs
        with np.errstate(over="ignore"):
            shares: Floats = np.clip(numbers / self.size, -FARTHEST, FARTHEST)
        return shares

    def number(self, place: float) -> float:
        return math.exp(min(place, LARGEST)) if self.size is None else place * self.size


def _unit(row: Floats) -> tuple[float, float]:
    """The median and the noise of a series on its scale: what `in_noise` took away."""
    import numpy as np

    return float(np.median(row)), float(spread(row))


@dataclass(frozen=True, slots=True)
class _Series:
    """One series: its numbers, the same in units of its noise without and with odd runs, and where levels begin."""

    values: Sequence[float]
    scaled: Floats
    measured: Floats
    scale: _Scale
    unit: tuple[float, float]
    limit: float
    starts: Sequence[int]

    def course(self) -> Course:
        """Its pieces and changes."""
        parts = shapes.stretches(self.scaled, self.starts, self.limit)
        pieces = [self._piece(part) for part in parts]
        changes = [
            self._unsteady(part, piece) for part, piece in zip(parts, pieces, strict=True) if part.shape != "level"
        ]
        rho = _likeness(self.scaled, self.starts) if len(parts) > 1 else 0.0
        steps = (self._step(*pair, rho) for pair in pairwise(parts))
        changes += [step for step in steps if step is not None]
        return Course(tuple(sorted(changes, key=lambda change: change.known_run)), tuple(pieces))

    def _piece(self, part: Stretch) -> Stretch:
        values = self.values[part.begin : part.end]
        if part.shape == "level":
            first = last = _median(values)  # of what was measured, so that no odd run moves it
        elif part.shape == "drift":
            first, last = (self._number(place) for place in (part.first, part.last))
        else:
            upper = self.scaled[part.begin : part.end] > (part.first + part.last) / 2
            first, last = (_median([x for x, is_up in zip(values, upper, strict=True) if is_up == up]) for up in (0, 1))
        return replace(part, first=first, last=last)

    def _number(self, place: float) -> float:
        middle, noise = self.unit
        return self.scale.number(middle + place * noise)

    def _unsteady(self, part: Stretch, piece: Stretch) -> ChangePoint:
        """A drift or two modes as a change."""
        runs = part.end - part.begin
        noise = noise_of(self.scaled[part.begin : part.end])
        upper = int((self.scaled[part.begin : part.end] > (part.first + part.last) / 2).sum())
        before, after = (runs - upper, upper) if part.shape == "bistable" else (0, runs)
        return ChangePoint(
            index=part.begin,
            old=piece.first,
            new=piece.last,
            score=abs(part.last - part.first) / noise,
            before=before,
            after=after,
            earliest=part.begin + 1,
            latest=part.end - 1,
            known_run=part.known_run,
            kind=part.shape if part.shape != "level" else "step",
            switches=len(part.switches),
        )

    def _step(self, old: Stretch, new: Stretch, rho: float) -> ChangePoint | None:
        """The step between two stretches, unless it is no more than the end of a drift or of two modes."""
        first = old.switches[-1] if old.switches else old.begin
        end = new.switches[0] if new.switches else new.end
        index = new.begin
        flat, noisy = self.scaled.copy(), self.measured.copy()
        for values in (flat, noisy):
            if old.shape == "drift":
                values[first:index] -= shapes.line(old) - old.last
            if new.shape == "drift":
                values[index:end] -= shapes.line(new) - new.first
        difference = score(flat, noisy, first, index, end, (_weight(old), _weight(new)))
        beside = {old.shape, new.shape}
        if beside != {"level"} and difference < self.limit:
            return None
        if beside in ({"drift"}, {"level", "drift"}) and shapes.joined(self.scaled, old, new, self.limit):
            return None
        earliest, latest = _likely(flat, first, index, end, rho)
        return ChangePoint(
            index=index,
            old=self._number(old.last) if old.shape == "drift" else _median(self.values[first:index]),
            new=self._number(new.first) if new.shape == "drift" else _median(self.values[index:end]),
            score=difference,
            before=index - first,
            after=end - index,
            earliest=earliest,
            latest=latest,
            known_run=index + MINIMUM - 1,
        )


def _likeness(scaled: Floats, starts: Sequence[int]) -> float:
    """The correlation of neighbouring runs after subtracting the levels, which begin at `starts`."""
    import numpy as np

    rest = np.concatenate([level - level.mean() for level in np.split(scaled, list(starts))])
    squares = float(np.square(rest).sum())
    observed = float((rest[1:] * rest[:-1]).sum()) / squares if squares > 0 else 0.0
    runs = len(scaled)
    return min(max((USUAL_RHO * WEIGHT + observed * runs) / (WEIGHT + runs), 0.0), MOST)


def _likely(scaled: Floats, first: int, index: int, end: int, rho: float) -> tuple[int, int]:
    """The earliest and the latest run with which the level that ends at `end` may have begun."""
    import numpy as np

    places = np.arange(max(first + 1, index - AROUND), min(end, index + AROUND + 1))
    level, single = 1 - rho, 1 - rho**2
    # Subtract what each run shares with the one before. The rest is independent.
    independent = scaled[first + 1 : end] - rho * scaled[first : end - 1]
    sums = np.concatenate(([0.0], np.cumsum(independent)))
    here = places - first - 1
    # Least squares for both levels at once, at each place: `o` is the old level, `n` the new one, `v` the values.
    oo = single + level**2 * here + rho**2
    nn = 1 + level**2 * (end - places - 1)
    ov = single * scaled[first] + level * sums[here] - rho * independent[here]
    nv = independent[here] + level * (sums[-1] - sums[here + 1])
    determinant = oo * nn - rho**2
    explained = (nn * ov**2 + 2 * rho * ov * nv + oo * nv**2) / determinant
    square = sum(noise**2 for noise in noise_beside(scaled, index)) / 2
    # The noise was computed from steps between runs, which correlation makes smaller.
    weights = explained / (2 * (1 + rho) * square) - np.log(determinant) / 2
    shares = np.exp(weights - weights.max())
    low, high = _narrowest(shares / shares.sum())
    return min(int(places[low]), index), max(int(places[high]), index)


def _narrowest(shares: Floats) -> tuple[int, int]:
    """Grow a range from the largest share, by the larger of its two neighbours, until it holds enough."""
    low = high = int(shares.argmax())
    covered = float(shares[low])
    while covered < SURE and (low > 0 or high < len(shares) - 1):
        before = float(shares[low - 1]) if low > 0 else -1.0
        behind = float(shares[high + 1]) if high < len(shares) - 1 else -1.0
        low, high = (low, high + 1) if behind > before else (low - 1, high)
        covered += max(before, behind)
    return low, high


def _weight(part: Stretch) -> float:
    """How well the end of a stretch is known: the end of a line as well as the mean of a quarter of its runs."""
    return 0.25 if part.shape == "drift" else 1.0


def _median(values: Sequence[float]) -> float:
    """The median, also of numbers whose sum is infinite."""
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low + (high - low) / 2
