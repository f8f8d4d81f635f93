"""Coverage and width of the intervals of rounds: replay the recordings of `record_rounds.py`.

A replayed run takes consecutive rounds of each group, and estimates every ratio like a run, with the spread shrunk to
the usual one. The twin of a group is its reference once more, so its true ratio is 1, and the coverage is the share of
intervals that contain 1. For other pairs of arms the truth is taken to be the median over all recorded rounds. A
slowdown is simulated by lengthening the times of one arm. It is seen if the interval is above 1, which is a false alarm
for a twin that was not slowed.

    PYTHONPATH=. python benchmarks/detection/replay_rounds.py benchmarks/detection/rounds.jsonl
"""

import argparse
import json
import math
import statistics
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from ipexperf.case import NetworkCase
from ipexperf.judge import rounds as judge
from ipexperf.result import RoundRecord, SeatRecord

SIZES = (2, 3, 5, 8)
"""Numbers of rounds of replayed runs."""
SLOWER = (0.0, 0.05, 0.10)


def case(name: str) -> NetworkCase:
    """Return a case with only an id."""
    return NetworkCase(name, "", "", "", "", 1, 1)


def read(path: Path) -> tuple[dict[str, list[RoundRecord]], set[str], dict[str, str]]:
    """Return the rounds of each group in the order of time, the CPUs, and how processes were started."""
    groups: dict[str, list[RoundRecord]] = defaultdict(list)
    processors, starts = set(), {}
    for text in path.read_text().splitlines():
        document = json.loads(text)
        processors.add(document.pop("cpu"))
        document.pop("at")
        starts[document["uid"]] = document.pop("start", "fresh")
        seats = tuple(
            SeatRecord(case(seat["case"]), seat["role"], tuple(map(tuple, seat["times"])), 0)
            for seat in document.pop("seats")
        )
        groups[document["group"]].append(RoundRecord(**document, seats=seats))
    return dict(groups), processors, starts


def slowed(one: RoundRecord, name: NetworkCase, factor: float) -> RoundRecord:
    """Return the round with the twin of a case slowed by this factor."""
    seats = tuple(
        replace(seat, times=tuple(tuple(factor * x for x in part) for part in seat.times))
        if seat.role == "twin" and seat.case == name
        else seat
        for seat in one.seats
    )
    return replace(one, seats=seats)


def twins(groups: dict[str, list[RoundRecord]], size: int, slower: float) -> list[tuple[str, judge.RoundsEstimate]]:
    """Return the estimate of each group's twin in every replayed run with this many rounds."""
    estimates = []
    shortest = min(map(len, groups.values()))
    for first in range(shortest):
        window = {name: [rounds[(first + n) % len(rounds)] for n in range(size)] for name, rounds in groups.items()}
        pools = judge.pools([one for rounds in window.values() for one in rounds])
        for name, rounds in window.items():
            base = next(seat.case for seat in rounds[0].seats if seat.role == "twin")
            if estimate := judge.twin([slowed(one, base, 1 + slower) for one in rounds], base, pools):
                estimates.append((name, estimate))
    return estimates


def stopped(groups: dict[str, list[RoundRecord]], precise: float) -> str:
    """Cover twins in runs of three rounds that get up to three more while the twin's interval is wider than this."""
    held, used = [], []
    for rounds in groups.values():
        base = next(seat.case for seat in rounds[0].seats if seat.role == "twin")
        for first in range(len(rounds)):
            for size in range(3, 7):
                window = [rounds[(first + n) % len(rounds)] for n in range(size)]
                estimate = judge.twin(window, base, judge.pools(window))
                assert estimate is not None
                ratio = estimate.ratio()
                assert ratio.lo is not None and ratio.hi is not None  # noqa: PT018 - an estimate has an interval
                if ratio.reach <= precise:
                    break
            held.append(ratio.lo <= 1 <= ratio.hi)
            used.append(size)
    return (
        f"\nthree rounds, and up to three more until the twin is known to within {precise:.0%}: "
        f"{statistics.fmean(used):.1f} rounds, coverage {statistics.fmean(held):.1%} of {len(held)}"
    )


def others(groups: dict[str, list[RoundRecord]], size: int) -> tuple[list[bool], list[float]]:
    """Return for every other ratio whether its interval contains the median over all rounds, and its half-width."""
    held, widths = [], []
    for rounds in groups.values():
        base = next(seat.case for seat in rounds[0].seats if seat.role == "twin")
        names = {seat.case for one in rounds for seat in one.seats if seat.role == "case"} - {base}
        for name in sorted(names, key=lambda x: x.name):
            truth = statistics.median(judge.logs(rounds, base, name))
            for first in range(len(rounds)):
                window = [rounds[(first + n) % len(rounds)] for n in range(size)]
                estimate = judge.between(window, base, name, judge.pools(window))
                if estimate is not None:
                    ratio = estimate.ratio()
                    assert ratio.lo is not None and ratio.hi is not None  # noqa: PT018 - an estimate has an interval
                    held.append(ratio.lo <= math.exp(truth) <= ratio.hi)
                    widths.append(math.sqrt(ratio.hi / ratio.lo) - 1)
    return held, widths


def by_start(groups: dict[str, list[RoundRecord]], starts: dict[str, str]) -> list[str]:
    """Compare ratios and spread of forked and fresh rounds, by the residuals of all ratios."""
    logs: dict[str, dict[tuple[str, str], list[float]]] = {"fresh": {}, "fork": {}}
    for group, rounds in groups.items():
        base = next(seat.case for seat in rounds[0].seats if seat.role == "twin")
        names = {seat.case for one in rounds for seat in one.seats if seat.role == "case"} - {base}
        for start, found in logs.items():
            some = [one for one in rounds if starts[one.uid] == start]
            found[group, "the twin"] = judge.twin_logs(some, base)
            found |= {(group, name.name): judge.logs(some, base, name) for name in names}
    if min(len(values) for found in logs.values() for values in found.values()) < 2:
        return []
    rows = ["", "| processes | rounds | spread of a ratio | robust spread |", "|---|---|---|---|"]
    for start, found in logs.items():
        rest = [value - statistics.median(values) for values in found.values() for value in values]
        robust = 1.4826 * statistics.median(map(abs, rest))
        count = sum(1 for one in starts.values() if one == start)
        rows.append(f"| {start} | {count} | {statistics.stdev(rest):.2%} | {robust:.2%} |")
    apart = [statistics.median(logs["fork"][key]) - statistics.median(logs["fresh"][key]) for key in logs["fork"]]
    told = ", ".join(f"{math.exp(value):.3f}" for value in sorted(apart))
    return [*rows, f"\nEach ratio of forked rounds over that of fresh ones: {told}"]


def independence(groups: dict[str, list[RoundRecord]]) -> list[str]:
    """Correlate, over rounds, the log ratios of two pairs of arms that share no process.

    The first pair has the reference and the second one its twin. Odd rounds are clipped. If rounds had a noise of their
    own, these correlations would be above 0, and several pairs of a round would be worth less than as many rounds.
    """
    rows = ["", "| group | rounds | correlation of two pairs of a round: mean | each |", "|---|---|---|---|"]
    for name, rounds in groups.items():
        base = next(seat.case for seat in rounds[0].seats if seat.role == "twin")
        cases = sorted({seat.case for one in rounds for seat in one.seats if seat.role == "case"} - {base}, key=str)
        first = {case: np.array(judge.logs(rounds, base, case)) for case in cases}
        twin = np.array(judge.twin_logs(rounds, base))
        each = [
            float(np.corrcoef(clipped(first[a]), clipped(first[b] - twin))[0, 1])
            for a in cases
            for b in cases
            if a != b
        ]
        shown = ", ".join(f"{value:+.2f}" for value in each)
        rows.append(f"| {name} | {len(rounds)} | {statistics.fmean(each):+.2f} | {shown} |")
    return rows


def clipped(values: np.ndarray) -> np.ndarray:
    """Return the values, none further than four robust standard deviations from their median."""
    middle = np.median(values)
    limit = 4 * 1.4826 * np.median(np.abs(values - middle))
    return np.clip(values, middle - limit, middle + limit)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the file that record_rounds.py wrote")
    groups, processors, starts = read(parser.parse_args().file)
    total = sum(map(len, groups.values()))
    print(f"{total} rounds on {', '.join(sorted(processors))}")
    print("\n".join(by_start(groups, starts)))
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
    print("\n".join(stopped(groups, precise) for precise in (0.03, 0.04, 0.05)))
    print("\n".join(independence(groups)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
