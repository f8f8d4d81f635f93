"""The false alarm rate of the change points of `ipexperf.judge.changes`, and how soon true changes are found.

Autocorrelated series (AR(1)) without a change are examined every night for a year, with the data up to that night. An
alarm is a new change point, more than four runs from earlier ones. Seeds are fixed, so every run prints the tables of
docs/reference/changes.md again.
"""

import argparse
import sys
from collections.abc import Iterator

import numpy as np

from ipexperf.judge import levels

NIGHTS = 365
RHO = 0.3
SEED = 20261121


def null(series: int, nights: int, rho: float, tail: float, seed: int) -> np.ndarray:
    """Return series of stationary AR(1) noise with sd 1, optionally with outliers."""
    chance = np.random.default_rng(seed)
    values = chance.standard_normal((series, nights))
    for night in range(1, nights):
        values[:, night] = rho * values[:, night - 1] + np.sqrt(1 - rho**2) * values[:, night]
    odd = chance.random(values.shape) < tail
    return np.where(odd, values + 10 * chance.standard_normal(values.shape), values)


def divide(logs: np.ndarray, limit: float) -> list[list[int]]:
    """Return where the levels of each series (a row) begin."""
    return levels.divided(*levels.in_noise(logs), limit)


def alarms(values: np.ndarray, threshold: float) -> np.ndarray:
    """Return the number of alarms in each series when it is examined every night."""
    told: list[list[int]] = [[] for _ in values]
    for night in range(2 * levels.MINIMUM, values.shape[1] + 1):
        # A log sd of 0.1 is far above the floor, and nothing else depends on the scale.
        limit = levels.limit_of(night) * threshold / levels.THRESHOLD
        for known, found in zip(told, divide(values[:, :night] * 0.1, limit), strict=True):
            known += [index for index in found if all(abs(index - old) > levels.MINIMUM for old in known)]
    return np.array([len(known) for known in told])


def delays(size: float, series: int, seed: int) -> Iterator[int]:
    """Return after how many nights of the new level each series reports it, or NIGHTS if not within sixty."""
    history, after = 60, 60
    values = null(series, history + after, RHO, 0.0, seed)
    values[:, history:] += size
    for row in values:
        for night in range(levels.MINIMUM, after + 1):
            (found,) = divide(row[np.newaxis, : history + night] * 0.1, levels.limit_of(history + night))
            if any(abs(index - history) <= levels.MINIMUM for index in found):
                yield night
                break
        else:
            yield NIGHTS


def line(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=60, help="series of a row (default: %(default)s)")
    parser.add_argument("--thresholds", default="5,5.5,6,6.5", help="tried for rho 0.3 (default: %(default)s)")
    parser.add_argument("--nights", type=int, default=NIGHTS, help="of a year (default: %(default)s)")
    told = parser.parse_args()
    if told.series < 2 or told.nights < 2 * levels.MINIMUM:
        parser.error(f"--series must be at least 2, and --nights {2 * levels.MINIMUM}")
    line("neighbours", "threshold", "series", "false alarms a series and 365 nights", "series without any")
    line(*["---"] * 5)
    rows = [(RHO, 0.0, float(text)) for text in told.thresholds.split(",")]
    rows += [(rho, 0.0, levels.THRESHOLD) for rho in (0.0, 0.5)] + [(RHO, 0.02, levels.THRESHOLD)]
    for number, (rho, tail, threshold) in enumerate(rows):
        found = alarms(null(told.series, told.nights, rho, tail, SEED + number), threshold)
        name = f"rho {rho}" + (f", {tail:.0%} of the nights far out" if tail else "")
        error = found.std(ddof=1) / np.sqrt(len(found))
        line(name, threshold, told.series, f"{found.mean():.2f} +- {error:.2f}", f"{(found == 0).mean():.0%}")
    print()
    line("change, in sd of a night", "series", "nights until half are reported", "reported within 14 nights")
    line(*["---"] * 4)
    for size in (1.0, 2.0, 3.0, 5.0):
        nights = np.array(list(delays(size, told.series, SEED)))
        half = int(np.median(nights))
        line(size, told.series, half if half < NIGHTS else "more than 60", f"{(nights <= 14).mean():.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
