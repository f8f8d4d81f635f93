"""Search recorded series for change points, and compare what is found with their labels.

The first table has a row for each change. Then come the labels that were found, and how many steps are reported in
the residuals of the same series in random order, which hold no step.

    PYTHONPATH=. python benchmarks/changepoints/real/read.py --format csv series.csv

A CSV file has the columns `series,time,value` and perhaps `label`. `asv` takes a results folder, `mozilla` the
`*_timeseries_data.csv` of Mozilla's published data set, one of them or a folder.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from formats import FORMATS, FormatError, Recorded
from residuals import NEAR, residuals

from ipexperf.judge.changes import ChangePoint, Course, courses, find_each
from ipexperf.judge.levels import MINIMUM

SEED = 20261124
YEAR = 365


def line(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def changes_of(one: Recorded, course: Course, near: int) -> None:
    """Print a row for each change of a series."""
    for change in course.changes:
        ratio = "-" if change.ratio is None else f"{change.ratio:.3f}"
        runs = f"{change.earliest} to {change.latest}"
        beside = [label for label in one.labels if abs(label - change.index) <= near]
        cell = ", ".join(map(str, beside)) if change.kind == "step" else ""
        line(one.name, change.kind, change.index, one.times[change.index], runs, ratio, cell or "-")


def steps_of(course: Course) -> list[ChangePoint]:
    return [change for change in course.changes if change.kind == "step"]


def agreement(every: Sequence[Recorded], results: Sequence[Course], near: int) -> str:
    """Compare the labels with the steps."""
    labels = hits = steps = alone = 0
    for one, course in zip(every, results, strict=True):
        places = [step.index for step in steps_of(course)]
        labels += len(one.labels)
        hits += sum(any(abs(label - place) <= near for place in places) for label in one.labels)
        steps += len(places)
        alone += sum(all(abs(label - place) > near for label in one.labels) for place in places)
    if not labels:
        return f"{steps} steps; there are no labels to compare them with"
    return f"{hits} of {labels} labels found within {near} runs; {alone} of {steps} steps have no label so near"


def shuffled(every: Sequence[Recorded], results: Sequence[Course], shuffles: int) -> str:
    """Count the steps in residuals in random order."""
    chance = np.random.default_rng(SEED)
    rows = [
        chance.permutation(residuals(one.values, course))
        for one, course in zip(every, results, strict=True)
        if course.pieces and min(one.values) > 0
        for _ in range(shuffles)
    ]
    if not rows:
        return "no series is long enough, and above 0, to be shuffled"
    kinds = Counter(change.kind for row in find_each([np.exp(row).tolist() for row in rows]) for change in row)
    each = kinds["step"] / sum(map(len, rows)) * YEAR
    others = f"{kinds['drift']} drifts, {kinds['bistable']} times two modes"
    return f"shuffled residuals: {kinds['step']} steps in {len(rows)} series, {each:.2f} in {YEAR} runs; {others}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="file or folder")
    parser.add_argument("--format", choices=tuple(FORMATS), required=True)
    parser.add_argument("--near", type=int, default=NEAR, help="runs from a label to its step (default: %(default)s)")
    parser.add_argument("--shuffles", type=int, default=10, help="of each series (default: %(default)s)")
    arguments = parser.parse_args()
    if arguments.near < 0 or arguments.shuffles < 1:
        parser.error("--near must be at least 0, and --shuffles 1")
    try:
        every = FORMATS[arguments.format](arguments.path)
    except FormatError as error:
        parser.exit(2, f"read.py: {error}\n")
    except OSError as error:
        parser.exit(2, f"read.py: {error.filename}: {error.strerror}\n")
    results = courses([one.values for one in every])
    line("series", "change", "run", "time", "95 % range", "ratio", "label")
    line(*["---"] * 7)
    for one, course in zip(every, results, strict=True):
        changes_of(one, course, arguments.near)
    print()
    short = sum(len(one.values) < 2 * MINIMUM for one in every)
    print(f"{sum(len(one.values) for one in every)} runs of {len(every)} series, {short} of them too short")
    print(agreement(every, results, arguments.near))
    print(shuffled(every, results, arguments.shuffles))
    return 0


if __name__ == "__main__":
    sys.exit(main())
