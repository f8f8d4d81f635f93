"""Series that mislead a search for change points: how many steps are reported, and how often a range holds the cause.

The first table is of series without any step: their scatter grows tenfold, they drift, or they stay in one of two modes
for about seven nights. The second is of series with one step, whose range is held against where it really was. Seeds
are fixed, so every run prints the tables of docs/reference/changes.md again.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from calibrate import SEED, line, null
from numpy.typing import NDArray

from ipexperf.judge import changes, levels

Values = NDArray[np.float64]
YEAR = 365
NIGHTS = 200
CALM, WILD, GROWS = 0.003, 0.03, 150
"""The log sd of the nights before and from this one on."""
DRIFT = 0.001
GAP, STAY = 0.08, 7
"""How far two modes are apart, and for how many nights a series stays in one."""
POINTS = (
    (0.05, 0.3, 0.02),
    (0.03, 0.3, 0.02),
    (0.08, 0.3, 0.02),
    (0.05, 0.0, 0.02),
    (0.05, 0.5, 0.02),
    (0.10, 0.3, 0.05),
    (0.02, 0.3, 0.01),
)
"""Operating points of the ranges: the size of the step, how alike neighbours are, and the log sd of a night."""
BEFORE, AFTER = 60, 60
NEAR = 15
"""The step that is reported nearest to the true one, within so many nights, is the one whose range is examined."""


def scatter(count: int, rho: float, seed: int) -> Values:
    """Return series whose scatter grows."""
    sd = np.where(np.arange(NIGHTS) < GROWS, CALM, WILD)
    return np.exp(null(count, NIGHTS, rho, 0.0, seed) * sd)


def drifting(nights: int, sd: float) -> Callable[[int, float, int], Values]:
    """Return what makes series that drift."""
    return lambda count, rho, seed: np.exp(null(count, nights, rho, 0.0, seed) * sd + DRIFT * np.arange(nights))


def sticky(nights: int, sd: float) -> Callable[[int, float, int], Values]:
    """Return what makes series with two modes."""

    def made(count: int, rho: float, seed: int) -> Values:
        switched = np.random.default_rng(seed + 1000).random((count, nights)) < 1 / STAY
        mode = np.cumsum(switched, axis=1) % 2
        return np.exp(null(count, nights, rho, 0.0, seed) * sd) * (1 + GAP * mode)

    return made


SERIES: dict[str, tuple[Callable[[int, float, int], Values], int]] = {
    f"scatter grows from {CALM:.1%} to {WILD:.0%}": (scatter, NIGHTS),
    **{
        f"{name}, {nights} nights, sd {sd:.1%}": (make(nights, sd), nights)
        for name, make in ((f"drift of {DRIFT:.1%} a night", drifting), (f"modes {GAP:.0%} apart", sticky))
        for nights in (NIGHTS, YEAR)
        for sd in (0.005, 0.01, 0.02)
    },
}


def alarms(values: Values) -> int:
    """Count the steps that any night reports, with the data up to that night, each once."""
    known: list[list[int]] = [[] for _ in values]
    for night in range(2 * levels.MINIMUM, values.shape[1] + 1):
        for before, found in zip(known, changes.courses(values[:, :night].tolist()), strict=True):
            indexes = [change.index for change in found.changes]
            before += [index for index in indexes if all(abs(index - old) > levels.MINIMUM for old in before)]
    return sum(map(len, known))


def ranges(size: float, rho: float, sd: float, count: int, seed: int) -> Iterator[tuple[bool, bool, int]]:
    """For each reported step: whether its best guess is right, whether its range is, and the runs of the range."""
    values = np.exp(sd * null(count, BEFORE + AFTER, rho, 0.0, seed))
    values[:, BEFORE:] *= 1 + size
    for found in changes.courses(values.tolist()):
        if steps := [change for change in found.changes if abs(change.index - BEFORE) <= NEAR]:
            step = min(steps, key=lambda change: abs(change.index - BEFORE))
            held = step.earliest <= BEFORE <= step.latest
            yield step.index == BEFORE, held, step.latest - step.earliest + 1


def print_shapes(count: int, rhos: Sequence[float], every_night: int) -> None:
    line("series", "rho", "series", "steps a year", "unsteady", "steps a year, asked every night")
    line(*["---"] * 6)
    for name, (make, nights) in SERIES.items():
        for rho in rhos:
            found = changes.courses(make(count, rho, SEED).tolist())
            steps = sum(len(course.changes) for course in found) / count * YEAR / nights
            unsteady = sum(course.unsteady for course in found) / count
            few = make(every_night, rho, SEED) if every_night else None
            nightly = "-" if few is None else f"{alarms(few) / len(few) * YEAR / nights:.2f}"
            line(name, rho, count, f"{steps:.2f}", f"{unsteady:.2f}", nightly)


def print_ranges(count: int) -> None:
    line(
        "step",
        "rho",
        "sd of a night",
        "reported",
        "best guess right",
        "range right",
        "runs of a range, mean and median",
    )
    line(*["---"] * 7)
    for number, (size, rho, sd) in enumerate(POINTS):
        rows = list(ranges(size, rho, sd, count, SEED + number))
        best, held, runs = (np.array(column) for column in zip(*rows, strict=True))
        shares = (f"{len(rows) / count:.0%}", f"{best.mean():.0%}", f"{held.mean():.1%}")
        line(f"{size:.0%}", rho, f"{sd:.0%}", *shares, f"{runs.mean():.1f}, {np.median(runs):.0f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=100, help="series of a row (default: %(default)s)")
    parser.add_argument("--ranges", type=int, default=2000, help="series of a row of ranges (default: %(default)s)")
    parser.add_argument("--rhos", default="0,0.3,0.5", help="how alike neighbours are (default: %(default)s)")
    nightly = "series of a row that are examined every night (default: %(default)s; 0: none)"
    parser.add_argument("--every-night", type=int, default=0, help=nightly)
    arguments = parser.parse_args()
    if arguments.series < 1 or arguments.ranges < 1 or arguments.every_night < 0:
        parser.error("--series and --ranges must be at least 1, and --every-night at least 0")
    print_shapes(arguments.series, [float(text) for text in arguments.rhos.split(",")], arguments.every_night)
    print()
    print_ranges(arguments.ranges)
    return 0


if __name__ == "__main__":
    sys.exit(main())
