"""Plant steps in the residuals of recorded series, and count how many are found.

The residuals of each series of a history keep their order, so that neighbours are as alike as they were; each trial
begins with another run, and plants a step somewhere. The row of 0 % has no step: all that is reported there is false.

    PYTHONPATH=. python benchmarks/changepoints/plant.py --db ipexperf.db
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ipexperf.errors import IpexperfError
from ipexperf.history import History
from ipexperf.history.changed import examine
from ipexperf.judge.changes import ChangePoint, Course, find_each
from ipexperf.judge.levels import MINIMUM
from ipexperf.result import METRICS, PRIMARY

SEED = 20261124
SIZES = (0.0, 0.03, 0.05, 0.08)
YEAR = 365
Values = NDArray[np.float64]
NEAR = 4
"""A step is found if it is reported within so many runs."""


def residuals(values: Sequence[float], course: Course) -> Values:
    """Return the log ratio of each run to its level. All values must be above 0."""
    logs: Values = np.log(np.asarray(values, dtype=float))
    for level in course.levels:
        logs[level.begin : level.end] -= np.log(level.value)
    return logs


def recorded(database: str, metric: str, least: int) -> list[Values]:
    """Return the residuals of every series of a history that has so many runs, all above 0."""
    with History.open(database, create=False) as history:
        history.check_begun()
        return [
            residuals(one.series.values, one.course)
            for one in examine(history, [metric])
            if len(one.series.values) >= least and min(one.series.values) > 0
        ]


def planted(rows: Sequence[Values], size: float, trials: int) -> tuple[int, int, int, int]:
    """Return how many steps were planted, found, and found within a range that holds them, and how many are false."""
    chance = np.random.default_rng(SEED)
    places, series = [], []
    for row in rows:
        for _ in range(trials):
            place = int(chance.integers(MINIMUM, len(row) - MINIMUM + 1))
            logs = np.roll(row, int(chance.integers(len(row))))
            logs[place:] += np.log1p(size)
            places.append(place)
            series.append(np.exp(logs).tolist())
    hits = in_range = false = 0
    for place, steps in zip(places, find_each(series), strict=True):
        step = _nearest(steps, place) if size else None
        hits += step is not None
        in_range += step is not None and step.earliest <= place <= step.latest
        false += len(steps) - (step is not None)
    return len(places) if size else 0, hits, in_range, false


def _nearest(steps: Sequence[ChangePoint], place: int) -> ChangePoint | None:
    near = [step for step in steps if abs(step.index - place) <= NEAR]
    return min(near, key=lambda step: abs(step.index - place), default=None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", default="ipexperf.db", help="history (default: %(default)s)")
    parser.add_argument("--metric", choices=tuple(METRICS), default=PRIMARY, help="default: %(default)s")
    parser.add_argument("--runs", type=int, default=30, help="a series has at least so many (default: %(default)s)")
    parser.add_argument("--trials", type=int, default=20, help="of each series and size (default: %(default)s)")
    arguments = parser.parse_args()
    if arguments.runs < 2 * MINIMUM or arguments.trials < 1:
        parser.error(f"--runs must be at least {2 * MINIMUM}, and --trials 1")
    try:
        rows = recorded(arguments.db, arguments.metric, arguments.runs)
    except IpexperfError as error:
        parser.exit(2, f"plant.py: {error}\n")
    if not rows:
        parser.exit(
            2, f"plant.py: {arguments.db} has no series of {arguments.metric} with {arguments.runs} good runs\n"
        )
    runs = sum(map(len, rows))
    print(f"{runs} runs of {len(rows)} series, log sd {np.sqrt(np.mean(np.concatenate(rows) ** 2)):.1%}\n")
    print("| step | trials | found | range holds it, of those found | false steps in 365 runs |")
    print("| --- | --- | --- | --- | --- |")
    for size in SIZES:
        steps, hits, in_range, false = planted(rows, size, arguments.trials)
        shares = (f"{hits / steps:.0%}" if steps else "-", f"{in_range / hits:.0%}" if hits else "-")
        each = f"{false / (runs * arguments.trials) * YEAR:.2f}"
        print(f"| {size:.0%} | {len(rows) * arguments.trials} | {' | '.join(shares)} | {each} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
