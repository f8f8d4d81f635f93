"""The range of runs that holds the cause of a step with a confidence of 95 %.

Each place at which the new level may have begun gets a probability: how well two levels that meet there explain the
runs, if neighbours are as alike as they are in this series (AR(1)). The range grows from the likeliest place until it
holds enough. How often it is right: `benchmarks/changepoints/shapes.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipexperf.judge.levels import AROUND, noise_beside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipexperf.judge.levels import Floats

SURE = 0.92
"""Least probability of a range. A range ends at a whole run and so has more: 95 % of such ranges are right."""
USUAL_RHO = 0.3
"""Correlation of neighbouring runs that is assumed of a series with few runs."""
WEIGHT = 30.0
"""Weight, in runs, of that assumption."""
MOST = 0.9


def likeness(scaled: Floats, starts: Sequence[int]) -> float:
    """The correlation of neighbouring runs after subtracting the levels, which begin at `starts`."""
    import numpy as np

    rest = np.concatenate([level - level.mean() for level in np.split(scaled, list(starts))])
    squares = float(np.square(rest).sum())
    observed = float((rest[1:] * rest[:-1]).sum()) / squares if squares > 0 else 0.0
    runs = len(scaled)
    return min(max((USUAL_RHO * WEIGHT + observed * runs) / (WEIGHT + runs), 0.0), MOST)


def likely(scaled: Floats, first: int, index: int, end: int, rho: float) -> tuple[int, int]:
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
