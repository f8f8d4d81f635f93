"""Change points of one series: where its level moved and stayed.

`levels` divides the runs. Here is said where a step may lie: each place at which the new level may have begun gets a
probability, of how well two levels that meet there explain the runs, if neighbours are as alike as they are in this
series (AR(1)). The range grows from the likeliest place until it holds enough. How often it is right:
`benchmarks/changepoints/shapes.py`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Literal, NamedTuple

from ipexperf.judge.levels import AROUND, MINIMUM, divided, in_drifts, in_noise, limit_of, noise_beside, score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipexperf.judge.levels import Floats

TOGETHER = 64
"""Number of series that are divided together, so that their sums fit into a processor's cache."""
BACK = 0.25
"""Largest share of a step that may be left after the next one has undone it."""
NEARLY = 0.5
"""The same of a series that goes to and fro: its levels are short, and so less well known."""
RETURNS = 3
"""A series that came back to the level before so often goes to and fro, and no run is to blame for these steps."""
SURE = 0.92
"""Least probability of a range. A range ends at a whole run and so has more: 95 % of such ranges are right."""
USUAL_RHO = 0.3
"""Correlation of neighbouring runs that is assumed of a series with few runs."""
WEIGHT = 30.0
"""Weight, in runs, of that assumption."""
MOST = 0.9

Direction = Literal["regressed", "improved", "changed"]


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A level that moved: `index` is the first run of the new one, `old` and `new` the levels.

    `score` is the difference in units of the noise around it; `before` and `after` count the runs of its levels.
    """

    index: int
    old: float
    new: float
    score: float
    before: int
    after: int
    earliest: int
    latest: int
    """The new level began with one of the runs from `earliest` to `latest`: 95 % of such ranges hold it."""

    @property
    def known_run(self) -> int:
        """The run with which it could first be reported."""
        return self.index + MINIMUM - 1

    @property
    def ratio(self) -> float | None:
        """The new level over the old, or None if one is below 0 or the old one is 0."""
        return None if self.old <= 0 or self.new < 0 else self.new / self.old

    @property
    def up(self) -> bool:
        """Whether the new level is higher."""
        return self.new > self.old

    def direction(self, *, higher_is_better: bool | None) -> Direction:
        """Return whether the change is for the better or worse."""
        if higher_is_better is None:
            return "changed"
        return "improved" if self.up == higher_is_better else "regressed"

    def undone_by(self, later: ChangePoint, left: float = BACK) -> bool:
        """Whether the next step of the same series returned to the old level, but for this share of the step."""
        return later.index - later.before == self.index and abs(later.new - self.old) <= left * abs(self.new - self.old)


class Level(NamedTuple):
    """The runs from `begin` to before `end`, and their median."""

    begin: int
    end: int
    value: float


@dataclass(frozen=True, slots=True)
class Course:
    """The changes of a series, oldest first, and the levels that its runs are divided into. A short one has none."""

    changes: tuple[ChangePoint, ...] = ()
    levels: tuple[Level, ...] = ()

    @property
    def unsteady(self) -> bool:
        """Whether its levels moved where no run is to blame: it drifts, or goes to and fro."""
        return len(self.changes) < len(self.levels) - 1


def courses(series: Sequence[Sequence[float]]) -> list[Course]:
    """The course of each series of finite numbers: one a run, the median of its launches.

    Those of one length are divided together, which is much quicker.
    """
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
            scaled, measured = in_noise(np.stack([_on_scale(series[place]) for place in some]))
            for index, (place, starts) in enumerate(zip(some, divided(scaled, measured, limit), strict=True)):
                every[place] = _course(series[place], scaled[index], measured[index], starts, limit)
    return every


def _on_scale(values: Sequence[float]) -> Floats:
    """Logarithms, or shares of the usual number if any number is 0 or less."""
    import numpy as np

    numbers = np.asarray(values, dtype=float)
    if all(value > 0 for value in values):
        logs: Floats = np.log(numbers)
        return logs
    shares: Floats = numbers / median([abs(value) for value in values if value != 0] or [1.0])
    return shares


def _course(values: Sequence[float], scaled: Floats, measured: Floats, starts: Sequence[int], limit: float) -> Course:
    """The levels of one series, which begin at `starts`, and the steps between them that a run is to blame for.

    `scaled` and `measured` are the values in units of their noise, without and with odd runs.
    """
    bounds = [0, *starts, len(values)]
    # Medians of what was measured, so that no odd run moves a level.
    levels = [Level(begin, end, median(values[begin:end])) for begin, end in pairwise(bounds)]
    rho = _likeness(scaled, starts) if starts else 0.0
    steps = []
    for old, new in pairwise(levels):
        place = old.begin, new.begin, new.end
        earliest, latest = _likely(scaled, *place, rho)
        steps.append(
            ChangePoint(
                index=new.begin,
                old=old.value,
                new=new.value,
                score=score(scaled, measured, *place),
                before=old.end - old.begin,
                after=new.end - new.begin,
                earliest=earliest,
                latest=latest,
            )
        )
    no_steps = in_drifts(scaled, starts, limit) | _to_and_fro(steps)
    return Course(tuple(step for step in steps if step.index not in no_steps), tuple(levels))


def _to_and_fro(steps: Sequence[ChangePoint]) -> set[int]:
    """Where the levels begin between which a series goes to and fro."""
    returns = [pair for pair in pairwise(steps) if pair[0].undone_by(pair[1], NEARLY)]
    if len(returns) < RETURNS:
        return set()
    levels = [level for pair in returns for step in pair for level in (step.old, step.new)]
    low, high = min(levels), max(levels)
    return {step.index for step in steps if low <= step.old <= high and low <= step.new <= high}


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
