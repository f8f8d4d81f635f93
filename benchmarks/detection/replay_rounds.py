"""How honest and how sharp are the intervals of rounds? What `record_rounds.py` recorded, replayed.

A replayed run takes so many rounds of each group that followed one another, and estimates every ratio as a run does:
the spread of its rounds is shrunk to what is usual in them. The twin of a group is its reference once more, so its true
ratio is 1: the share of intervals that hold 1 is the coverage. For every other pair of arms the truth is taken to be
the median over all recorded rounds. A slowdown is made by making the times of one arm longer by so much; it is seen
where the interval lies above 1, which is a false alarm of the twin where nothing was made longer.

    PYTHONPATH=. python benchmarks/detection/replay_rounds.py benchmarks/detection/rounds.jsonl
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from ipexperf.case import Case
from ipexperf.judge import rounds as judge
from ipexperf.result import RoundRecord, SeatRecord

SIZES = (2, 3, 5, 8)
"""So many rounds a replayed run has."""
SLOWER = (0.0, 0.05, 0.10)


def case(name: str) -> Case:
    """A case that is told from others by its id alone."""
    return Case(name, "", "", "", "", 1, 1)


def read(path: Path) -> tuple[dict[str, list[RoundRecord]], set[str]]:
    """The rounds of each group in the order of time, and the processors that they were recorded on."""
    groups: dict[str, list[RoundRecord]] = defaultdict(list)
    processors = set()
    for text in path.read_text().splitlines():
        document = json.loads(text)
        processors.add(document.pop("cpu"))
        document.pop("at")
        seats = tuple(
            SeatRecord(case(seat["case"]), seat["role"], tuple(map(tuple, seat["times"])), 0)
            for seat in document.pop("seats")
        )
        groups[document["group"]].append(RoundRecord(**document, seats=seats))
    return dict(groups), processors


def slowed(one: RoundRecord, name: Case, factor: float) -> RoundRecord:
    """The round with the twin of a case made slower by so much."""
    seats = tuple(
        replace(seat, times=tuple(tuple(factor * x for x in part) for part in seat.times))
        if seat.role == "twin" and seat.case == name
        else seat
        for seat in one.seats
    )
    return replace(one, seats=seats)


def twins(groups: dict[str, list[RoundRecord]], size: int, slower: float) -> list[tuple[str, judge.Estimate]]:
    """The estimate of the twin of each group in every replayed run of so many rounds."""
    estimates = []
    shortest = min(map(len, groups.values()))
    for first in range(shortest):
        window = {name: [rounds[(first + n) % len(rounds)] for n in range(size)] for name, rounds in groups.items()}
        pool = judge.usual([one for rounds in window.values() for one in rounds])
        for name, rounds in window.items():
            base = next(seat.case for seat in rounds[0].seats if seat.role == "twin")
            logs = judge.twin_logs([slowed(one, base, 1 + slower) for one in rounds], base)
            if estimate := judge.estimate(logs, pool):
                estimates.append((name, estimate))
    return estimates


def others(groups: dict[str, list[RoundRecord]], size: int) -> tuple[list[bool], list[float]]:
    """For every other ratio: whether its interval holds the median over all rounds, and its half-width."""
    held, widths = [], []
    for rounds in groups.values():
        base = next(seat.case for seat in rounds[0].seats if seat.role == "twin")
        names = {seat.case for one in rounds for seat in one.seats if seat.role == "case"} - {base}
        for name in sorted(names, key=lambda x: x.model):
            truth = statistics.median(judge.logs(rounds, base, name))
            for first in range(len(rounds)):
                window = [rounds[(first + n) % len(rounds)] for n in range(size)]
                estimate = judge.estimate(judge.logs(window, base, name), judge.usual(window))
                if estimate is not None:
                    ratio = estimate.ratio()
                    assert ratio.lo is not None and ratio.hi is not None  # noqa: PT018 - an estimate has an interval
                    held.append(ratio.lo <= math.exp(truth) <= ratio.hi)
                    widths.append(math.sqrt(ratio.hi / ratio.lo) - 1)
    return held, widths


def spread(groups: dict[str, list[RoundRecord]]) -> list[str]:
    """For each group how much each ratio to the reference differs from round to round."""
    rows = []
    for group, rounds in groups.items():
        base = next(seat.case for seat in rounds[0].seats if seat.role == "twin")
        names = sorted({seat.case for one in rounds for seat in one.seats if seat.role == "case"} - {base}, key=str)
        seconds = statistics.median(one.seconds for one in rounds)
        turns = statistics.median(one.turns for one in rounds)
        dropped = sum(one.dropped for one in rounds)
        rows.append(
            f"\n{group}: {len(rounds)} rounds of {len(rounds[0].seats)} arms, {turns:.0f} turns and {seconds:.1f} s "
            f"each in the median, {dropped} turns dropped\n\n"
            "| arm | over the reference | spread | robust spread |\n|---|---|---|---|"
        )
        for label, logs in [("the twin", judge.twin_logs(rounds, base))] + [
            (name.model, judge.logs(rounds, base, name)) for name in names
        ]:
            middle = statistics.median(logs)
            robust = 1.4826 * statistics.median(abs(x - middle) for x in logs)
            rows.append(f"| {label} | {math.exp(middle):.3f} | {statistics.stdev(logs):.1%} | {robust:.1%} |")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the file that record_rounds.py wrote")
    groups, processors = read(parser.parse_args().file)
    total = sum(map(len, groups.values()))
    print(f"{total} rounds on {', '.join(sorted(processors))}")
    print("\n".join(spread(groups)))
    print(
        "\n| rounds | twins: coverage | false alarms, slower | 5 % seen | 10 % seen | half-width | others: coverage |"
    )
    print("|---|---|---|---|---|---|---|")
    for size in SIZES:
        by_effect = {slower: [estimate.ratio() for _, estimate in twins(groups, size, slower)] for slower in SLOWER}
        same = by_effect[0.0]
        covered = statistics.fmean(one.lo <= 1 <= one.hi for one in same)
        seen = {slower: statistics.fmean(one.lo > 1 for one in found) for slower, found in by_effect.items()}
        width = statistics.median(math.sqrt(one.hi / one.lo) - 1 for one in same)
        held, _ = others(groups, size)
        print(
            f"| {size} | {covered:.1%} of {len(same)} | {seen[0.0]:.1%} | {seen[0.05]:.0%} | {seen[0.10]:.0%} "
            f"| {width:.1%} | {statistics.fmean(held):.1%} of {len(held)} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
