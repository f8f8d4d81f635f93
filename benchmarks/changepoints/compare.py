"""Compare our change points with those of otava and asv on the same simulated series.

Nights vary by 2 % and are autocorrelated (AR(1), rho 0.3), as in calibrate.py. Some series have no change, others one
permanent slowdown. It is found if it is reported within four nights of it; other reports are false. All tools get the
same numbers and use their defaults, and only slowdowns count.

With `--marked` on the Turing Change Point Dataset instead, on its series that have one value a time and no gaps. Five
people marked each. Precision, recall and F1 are those of its authors (arXiv:2003.06222): a mark is found within five
places, and the start of a series is a change point of everybody. Other sets can be laid out alike.

Both tools must be installed (`pip install apache-otava asv`), best in an environment of their own.

    PYTHONPATH=. python benchmarks/changepoints/compare.py
    git clone https://github.com/alan-turing-institute/TCPD
    PYTHONPATH=. python benchmarks/changepoints/compare.py --marked TCPD
"""

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from calibrate import RHO, SEED, line, null
from numpy.typing import NDArray

from ipexperf.judge import changes

Values = NDArray[np.float64]
Tool = Callable[[Sequence[float]], list[tuple[int, bool]]]
"""Finds where a level changed, and whether it rose."""
NIGHTS = 200
FIRST, LAST = 80, 180
"""Range of nights in which a change begins."""
SD = 0.02
NEAR = 4
MARKED_NEAR = 5
SIZES = (0.03, 0.05, 0.08)
DELAYED = 0.05
"""Size of the change for measuring the delay. It begins after 100 nights, and is searched on each following night."""
HISTORY, AFTER = 100, 30


def ours(values: Sequence[float]) -> list[tuple[int, bool]]:
    (course,) = changes.courses([values])
    return [(change.index, change.up) for change in course.changes]


def otava(values: Sequence[float]) -> list[tuple[int, bool]]:
    """Run otava with a window of 50 nights and p < 0.001, like its command."""
    from otava.analysis import compute_change_points

    found, _ = compute_change_points(list(values), window_len=50, max_pvalue=0.001, min_magnitude=0.0)
    return [(int(point.index), bool(point.stats.mean_2 > point.stats.mean_1)) for point in found]


def asv_steps(values: Sequence[float]) -> list[tuple[int, bool]]:
    from asv.step_detect import detect_steps

    steps = detect_steps(list(values))
    return [(after[0], after[2] > before[2]) for before, after in itertools.pairwise(steps)]


TOOLS: dict[str, Tool] = {
    "**ipexperf**": ours,
    "otava": otava,
    "asv, steps": asv_steps,
}


def slowdowns(tool: Tool, values: Sequence[float]) -> list[int]:
    return [index for index, up in tool(values) if up]


def series(count: int, nights: int, tail: float, seed: int) -> Values:
    """Return the seconds of each night, without a change."""
    found: Values = np.exp(SD * null(count, nights, RHO, tail, seed))
    return found


def judged(tool: Tool, tail: float, count: int) -> list[str]:
    """Return false alarms per series without a change, the share found of each size, and the share of true reports."""
    alarms = [len(slowdowns(tool, row.tolist())) for row in series(count, NIGHTS, tail, SEED)]
    told, hits, shares = sum(alarms), 0, []
    for number, size in enumerate(SIZES, 1):
        values = series(count, NIGHTS, tail, SEED + number)
        begins = np.random.default_rng(SEED + number).integers(FIRST, LAST, count)
        caught = 0
        for row, begin in zip(values, begins, strict=True):
            row[begin:] *= 1 + size
            found = slowdowns(tool, row.tolist())
            told += len(found)
            caught += any(abs(index - begin) <= NEAR for index in found)
        hits += caught
        shares.append(f"{caught / count:.0%}")
    return [f"{np.mean(alarms):.2f}", *shares, f"{hits / told:.0%}" if told else "-"]


def delay(tool: Tool, count: int) -> str:
    """Return the nights of a new level until half of the series report it."""
    values = series(count, HISTORY + AFTER, 0.0, SEED + 9)
    values[:, HISTORY:] *= 1 + DELAYED
    nights = []
    for row in values:
        known = (n for n in range(1, AFTER + 1) if _near(slowdowns(tool, row[: HISTORY + n].tolist())))
        nights.append(next(known, AFTER + 1))
    half = int(np.median(nights))
    return str(half) if half <= AFTER else f"more than {AFTER}"


def _near(found: Sequence[int]) -> bool:
    return any(abs(index - HISTORY) <= NEAR for index in found)


def found(marks: Collection[int], reports: Collection[int]) -> int:
    """How many marks have a report of their own nearby."""
    left, count = set(reports), 0
    for mark in sorted(marks):
        near = [report for report in left if abs(report - mark) <= MARKED_NEAR]
        if near:
            left.remove(min(near, key=lambda report: abs(report - mark)))
            count += 1
    return count


def score(people: Mapping[str, Collection[int]], reports: Collection[int]) -> tuple[float, float, float]:
    """Precision against the marks of all people, mean recall of each one's, and their F1."""
    marks, reports = [{0, *each} for each in people.values()], {0, *reports}
    precision = found(set().union(*marks), reports) / len(reports)
    recall = fmean(found(each, reports) / len(each) for each in marks)
    return precision, recall, 2 * precision * recall / (precision + recall)


def of_marked(folder: Path) -> None:
    """Print what the tools find of what people marked."""
    series = {}
    for name, people in json.loads((folder / "annotations.json").read_text()).items():
        file = folder / "datasets" / name / f"{name}.json"
        dimensions = json.loads(file.read_text())["series"] if file.exists() else []
        if len(dimensions) == 1 and None not in dimensions[0]["raw"]:
            series[name] = people, dimensions[0]["raw"]
    line(f"{len(series)} series", "precision", "recall", "F1", "change points")
    line(*["---"] * 5)
    for name, tool in {"nothing": lambda _: [], **TOOLS}.items():
        told = [[index for index, _ in tool(values)] for _, values in series.values()]
        scores = [score(people, reports) for (people, _), reports in zip(series.values(), told, strict=True)]
        line(name, *(f"{fmean(column):.2f}" for column in zip(*scores, strict=True)), str(sum(map(len, told))))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=100, help="of each size (default: %(default)s)")
    parser.add_argument("--delayed", type=int, default=40, help="whose delay is looked at (default: %(default)s)")
    parser.add_argument("--marked", type=Path, help="folder of series that people have marked")
    told = parser.parse_args()
    if told.marked:
        of_marked(told.marked)
        return 0
    sizes = [f"found at {size:.0%}" for size in SIZES]
    line("noise", "tool", "false alarms a series", *sizes, "of those reported, true")
    line(*["---"] * 7)
    for noise, tail in (("AR(1)", 0.0), ("AR(1), 2 % of the nights far out", 0.02)):
        for name, tool in TOOLS.items():
            line(noise, name, *judged(tool, tail, told.series))
    print()
    nights = f"nights until half of {DELAYED:.0%} are reported"
    line("tool", nights)
    line(*["---"] * 2)
    for name, tool in TOOLS.items():
        line(name, delay(tool, told.delayed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
