"""False alarm and detection rates of rules on real launches: replay the recordings of `record.py`.

All recorded launches ran identical code. A slowdown is simulated by lengthening the times of one arm. Launches keep
their order: a replayed comparison starts at a random one and takes those that followed, cyclically. Processes are
assigned to arms at random. There are far more such comparisons than launches, so they are not independent: the table
describes that machine in that hour.

Our rule is compared with common ones, written from their documentation or source, each with the number of processes
and samples that it requires. Rules on a history get the launches before as their history. otava is a package of its own
(`pip install apache-otava`, best in an environment of its own); without it its row is left out.

    PYTHONPATH=. python benchmarks/detection/replay.py benchmarks/detection/recorded.csv
"""

import argparse
import csv
import importlib.util
import math
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy import stats
from simulate import COLUMNS, EFFECTS, POLICY, Values, hundred, judged, shown

from ipexperf.judge.ratios import neighbour_ratio

SEED = 20261121
COMPARISONS = 2000


@dataclass(slots=True)
class Recorded:
    """The recording of one case, in the order of time."""

    ratios: list[float] = field(default_factory=list)
    """Log ratio of each pair."""
    apart: list[list[float]] = field(default_factory=list)
    """Steps of each process that was measured alone."""
    took: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})
    """Seconds of each pair (True) and of each single process, with start and warm-up."""

    def seconds(self, *, pair: bool) -> float:
        """Return the seconds of one, from its start to that of the next."""
        return float(np.median(self.took[pair]))


def read(path: Path) -> dict[str, Recorded]:
    """Read the file of record.py. Incomplete pairs are left out."""
    found: dict[str, Recorded] = defaultdict(Recorded)
    sides: dict[tuple[str, int], list[list[float]]] = defaultdict(list)
    before: tuple[str, bool, float] | None = None
    with path.open() as file:
        for case, how, number, began, told in csv.reader(file):
            now = (case, how != "apart", float(began))
            if before is not None and now != before:
                found[before[0]].took[before[1]].append(now[2] - before[2])
            before = now
            seconds = [float(value) for value in told.split()]
            if how == "apart":
                found[case].apart.append(seconds)
            else:
                sides[case, int(number)].append(seconds)
    for (case, _), turns in sides.items():
        if len(turns) == 2:
            found[case].ratios.append(neighbour_ratio(*turns))
    return dict(found)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for alarms, and the processes that it needs: those of a history first, then of both arms."""

    name: str
    alarm: Callable[[Values, Values], bool]
    """Called with the steps of the old and the new processes, one process per row."""
    old: int
    new: int
    interleaved: bool = False
    measured: int | None = None
    """Processes that a comparison costs. None: all. A history costs none."""

    @property
    def processes(self) -> int:
        """Number of processes to wait for."""
        return self.old + self.new if self.measured is None else self.measured


def medians(side: Values) -> Values:
    found: Values = np.median(side, axis=1)
    return found


def beyond(share: float) -> Callable[[Values, Values], bool]:
    """Alarm if the median of the runs' medians has risen by more than this share."""
    return lambda old, new: bool(np.median(medians(new)) > np.median(medians(old)) * (1 + share))


def compare_fail(old: Values, new: Values) -> bool:
    """pytest-benchmark with `--benchmark-compare-fail=mean:5%`: compare the means of two runs."""
    return bool(new.mean() / old.mean() - 1 > 0.05)


def asv_continuous(old: Values, new: Values) -> bool:
    """asv: slower by its factor of 1.1 in the median, and Mann-Whitney over the samples says p < 0.002.

    Two rounds of at most five samples each, as it has them by default.
    """
    sides = [side[:, :5].ravel() for side in (old, new)]
    slower = np.median(sides[1]) > 1.1 * np.median(sides[0])
    return bool(slower and stats.mannwhitneyu(*sides).pvalue < 0.002)


def pyperf_compare(old: Values, new: Values) -> bool:
    """pyperf compare_to: Student's t-test over three values of each process, 95 %, two-sided; and slower."""
    sides = [side[:, :18].reshape(len(side), 3, 6).mean(axis=2).ravel() for side in (old, new)]
    return bool(stats.ttest_ind(*sides).pvalue < 0.05 and sides[1].mean() > sides[0].mean())


def google_benchmark(old: Values, new: Values) -> bool:
    """google-benchmark's compare.py: Mann-Whitney over nine repetitions in one process each, p < 0.05; and slower."""
    sides = [side[0, :18].reshape(9, 2).mean(axis=1) for side in (old, new)]
    return bool(stats.mannwhitneyu(*sides).pvalue < 0.05 and sides[1].mean() > sides[0].mean())


def mann_whitney(old: Values, new: Values) -> bool:
    """Mann-Whitney over all iterations of all runs, p < 0.05; and slower."""
    slower = np.median(new) > np.median(old)
    return bool(slower and stats.mannwhitneyu(old.ravel(), new.ravel()).pvalue < 0.05)


def bencher(old: Values, new: Values) -> bool:
    """Bencher's t-test: one new value is above mean + t(0.99) x standard deviation of those before."""
    known = medians(old)
    return bool(medians(new)[0] > known.mean() + stats.t.ppf(0.99, len(known) - 1) * known.std(ddof=1))


def rustc_perf(old: Values, new: Values) -> bool:
    """rustc-perf: a change above Q3 + 3 IQR of the changes before it, from night to night.

    Its quartiles are the medians of the lower and the upper half, without what is in the middle.
    """
    known = medians(old)
    changes = np.sort(np.abs(np.diff(known) / known[:-1]))
    half = len(changes) // 2
    low, high = np.median(changes[:half]), np.median(changes[-half:])
    return bool(medians(new)[0] / known[-1] - 1 > high + 3 * (high - low))


NEAR = 4
"""A change point counts if it is within this many nights of the true one, as in `changepoints/compare.py`."""


def otava(old: Values, new: Values) -> bool:
    """otava with the settings of its command (window 50, p < 0.001): an upward change point near the true one."""
    from otava.analysis import compute_change_points

    nights = [*medians(old), *medians(new)]
    found, _ = compute_change_points(nights, window_len=50, max_pvalue=0.001, min_magnitude=0.0)
    return any(abs(point.index - len(old)) <= NEAR and point.stats.mean_2 > point.stats.mean_1 for point in found)


RULES = (
    Rule("pytest-benchmark, compare-fail mean:5%", compare_fail, 1, 1),
    Rule("asv continuous, factor 1.1", asv_continuous, 2, 2, interleaved=True),
    Rule("pyperf compare_to, 20 processes", pyperf_compare, 20, 20),
    Rule("google-benchmark, U test", google_benchmark, 1, 1),
    Rule("TorchBench, 7 %", beyond(0.07), 1, 1),
    Rule("torch-xpu-ops, 10 %", beyond(0.10), 1, 1),
    Rule("torch-xpu-ops, 20 %", beyond(0.20), 1, 1),
    Rule("Bencher, t-test over 30 runs", bencher, 30, 1, measured=1),
    Rule("rustc-perf, IQR over 30 runs", rustc_perf, 30, 1, measured=1),
    *([Rule("otava, 5 nights after 30", otava, 30, 5, measured=5)] if importlib.util.find_spec("otava") else []),
    Rule("Mann-Whitney, pooled, 5 runs", mann_whitney, 5, 5),
)


def ours(ratios: list[float], chance: np.random.Generator, effect: float) -> dict[str, float]:
    """Our rule, on pairs in recorded order."""
    most, cases = POLICY.looks[-1], []
    for _ in range(COMPARISONS):
        begin = int(chance.integers(len(ratios)))
        signs = chance.choice((-1, 1), most)
        following = [ratios[(begin + index) % len(ratios)] for index in range(most)]
        cases.append([math.log1p(effect) + sign * ratio for sign, ratio in zip(signs, following, strict=True)])
    return judged(cases)


def theirs(rule: Rule, apart: Values, chance: np.random.Generator, effect: float) -> float:
    """Return the share of comparisons with an alarm."""
    needed, alarms = rule.old + rule.new, 0
    for _ in range(COMPARISONS):
        begin = int(chance.integers(len(apart)))
        taken = apart[np.arange(begin, begin + needed) % len(apart)]
        old, new = (taken[::2], taken[1::2]) if rule.interleaved else (taken[: rule.old], taken[rule.old :])
        if rule.old == rule.new and chance.random() < 0.5:
            old, new = new, old
        alarms += rule.alarm(old, new * (1 + effect))
    return alarms / COMPARISONS


def rows(case: str, recorded: Recorded, chance: np.random.Generator) -> list[list[str]]:
    found = {effect: ours(recorded.ratios, chance, effect) for effect in EFFECTS}
    told = [[case, "**pairs, sequential**", *shown(found, recorded.seconds(pair=True))]]
    apart = np.array(recorded.apart)
    for rule in RULES:
        if len(apart) < rule.old + rule.new:
            print(f"{case}: {rule.name} needs {rule.old + rule.new} launches apart: left out", file=sys.stderr)
        else:
            shares = [hundred(theirs(rule, apart, chance, effect)) for effect in EFFECTS]
            seconds = f"{rule.processes * recorded.seconds(pair=False):.0f}"
            told.append([case, rule.name, *shares, *["-"] * 4, seconds, seconds])
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="what record.py recorded")
    recorded = read(parser.parse_args().file)
    print("| " + " | ".join(("case", *COLUMNS)) + " |\n|" + "---|" * (1 + len(COLUMNS)))
    for index, (case, found) in enumerate(sorted(recorded.items())):
        if len(found.ratios) < POLICY.looks[-1] or len(found.apart) < 2:
            sys.exit(f"replay.py: {case}: {len(found.ratios)} pairs and {len(found.apart)} launches apart are too few")
        spread = (
            100 * float(np.std(found.ratios, ddof=1)),
            100 * float(np.std(np.log(medians(np.array(found.apart))), ddof=1)),
        )
        for row in rows(case, found, np.random.default_rng([SEED, index])):
            print("| " + " | ".join(row) + " |")
        told = f"{2 * len(found.ratios)} launches in pairs that spread by {spread[0]:.1f} %"
        told += f", {len(found.apart)} apart that spread by {spread[1]:.1f} %"
        costs = f"{found.seconds(pair=True):.1f} s a pair, {found.seconds(pair=False):.1f} s a launch apart"
        print(f"{case}: {told}; {costs}", file=sys.stderr)


if __name__ == "__main__":
    main()
