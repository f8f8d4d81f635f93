"""Other rules for the intervals of rounds and for the looks at pairs, replayed beside the shipped ones.

Intervals: recorded rounds as they followed one another and in random order (which takes away the machine's slow
changes), and simulated rounds whose true ratios are 1. Looks: recorded twins of `rounds.jsonl` and pairs of
`recorded.csv`, each also with the opposite sign, and simulated pairs. Levels of other looks are calibrated as in
`calibrate.py`, on fewer paths and for fewer rates.

    PYTHONPATH=. python benchmarks/detection/candidates.py > benchmarks/detection/candidates.md
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import calibrate
import numpy as np
import replay_rounds
from numpy.typing import NDArray
from scipy.special import stdtrit

from ipexperf.judge import rounds as judge
from ipexperf.judge import sequential
from ipexperf.judge.pairs import neighbour_ratio
from ipexperf.judge.policy import PairPolicy
from ipexperf.judge.rounds import FLOOR, OF_OTHERS, OUTLIER, PRIOR, TRUST

FOLDER = Path(__file__).parent
LEGEND = """\
Intervals: coverage of twins / of other ratios, in per cent, and in brackets their half-widths. Columns are rounds of a
run.
Looks: `regressed` / `ok`, in per cent, then pairs in the median and, in brackets, on average.
"""
SEED = 20261124
SIZES = (2, 3, 5, 8)
SHUFFLED, SIMULATED = 150, 250
"""Replayed runs in random order, and simulated runs, of each size."""
RECORDINGS, DRAWS = 2000, 10
"""Simulated recordings, and random assignments of recorded processes to arms."""
PATHS = 400_000
CASES = 4000
SPREADS = (0.015, 0.02, 0.03, 0.04)
EFFECTS = (0.0, 0.02, 0.03, 0.05, 0.10)
FIRST, SECOND, LATER = 14, 9, 6
"""Measured seconds of a comparison's first pair, of its second one, and of each later one."""
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Usual:
    """The usual spread of a group's ratios, its degrees of freedom, and the noise that is left in each log time."""

    scale: float
    freedom: float
    rest: Values


def usual(times: Values, prior: judge.Pool, outlier: float) -> Usual:
    """`judge.usual` of rounds with the same arms, with another limit for outliers."""
    count, arms = times.shape
    freedom = (count - 1) * (arms - 1)
    total = prior.freedom + freedom
    moved = times - times.mean(1, keepdims=True)
    moved = moved - np.median(moved, 0)
    off = moved - np.median(moved, 1, keepdims=True)
    typical = 1.4826 * float(np.median(np.abs(off))) * math.sqrt(off.size / freedom)
    limit = outlier * math.sqrt((prior.freedom * prior.scale**2 / 2 + freedom * typical**2) / total)
    kept = times - off + np.clip(off, -limit, limit) if count > 2 else times
    rest = kept - kept.mean(1, keepdims=True) - kept.mean(0) + kept.mean()
    variance = (prior.freedom * prior.scale**2 + 2 * float((rest**2).sum())) / total
    return Usual(math.sqrt(max(variance, FLOOR**2)), total, rest)


def of_group(groups: dict[str, Values], name: str, outlier: float) -> Usual:
    """The usual spread of a group, to which the other groups of the run add their median."""
    others = [usual(times, PRIOR, outlier) for other, times in groups.items() if other != name]
    scales = [one.scale for one in others] + [PRIOR.scale] * (len(others) % 2 == 0)
    freedom = min(sum(one.freedom for one in others), OF_OTHERS)
    return usual(groups[name], judge.Pool(statistics.median(scales), freedom), outlier)


@dataclass(frozen=True, slots=True)
class Rule:
    """A way to make an interval of a few log ratios, between the arms in column 0 and in another column."""

    name: str
    trust: float = TRUST
    outlier: float = OUTLIER
    by_arm: bool = False
    """Each arm has its own variance, shrunk to the group's. A ratio's variance is the sum of two (Satterthwaite)."""

    def holds(self, logs: Values, known: Usual, arm: int, truth: float) -> tuple[bool, float]:
        """Whether the interval contains the truth, and its half-width."""
        count = len(logs)
        if count > 2:
            middle = float(np.median(logs))
            logs = np.clip(logs, middle - self.outlier * known.scale, middle + self.outlier * known.scale)
        trust = min(known.freedom, self.trust)
        freedom = trust + count - 1
        if self.by_arm:
            first, second = (trust * known.scale**2 / 2 + (count - 1) * self._arms(known.rest)[[0, arm]]) / freedom
            variance = first + second
            freedom *= variance**2 / (first**2 + second**2)
        else:
            variance = (trust * known.scale**2 + (count - 1) * logs.var(ddof=1)) / freedom
        half = math.sqrt(max(variance, FLOOR**2) / count) * -float(stdtrit(freedom, 0.025))
        return abs(float(logs.mean()) - truth) <= half, math.expm1(half)

    @staticmethod
    def _arms(rest: Values) -> Values:
        """The variance of each arm: residuals also contain a share of every other arm's."""
        count, arms = rest.shape
        squares = (rest**2).sum(0) / (count - 1)
        total = squares.sum() / (1 - 1 / arms)
        return np.maximum((squares - total / arms**2) / (1 - 2 / arms), 0)


RULES = (
    Rule("**shipped**: a group's spread, worth 6"),
    Rule("a group's spread, worth 3", trust=3),
    Rule("a group's spread, worth 10", trust=10),
    Rule("outliers from 3 deviations on", outlier=3),
    Rule("outliers from 2 deviations on", outlier=2),
    Rule("a variance for each arm, worth 4", trust=4, by_arm=True),
    Rule("the same, outliers from 3 on", trust=4, outlier=3, by_arm=True),
)


@dataclass(frozen=True, slots=True)
class Recording:
    """Recorded rounds of a group: log times and log ratios to the reference, a row a round, the twin's column first."""

    times: Values
    ratios: Values


def recordings() -> dict[str, Recording]:
    groups, _, _ = replay_rounds.read(FOLDER / "rounds.jsonl")
    read = {}
    for name, rounds in groups.items():
        base = next(seat.case for seat in rounds[0].seats if seat.role == "twin")
        cases = sorted({seat.case for seat in rounds[0].seats if seat.role == "case"} - {base}, key=str)
        order = [("case", base), ("twin", base), *(("case", case) for case in cases)]
        times = [
            [
                float(np.median(np.log(seat.times[0])))
                for role, case in order
                for seat in one.seats
                if (seat.role, seat.case) == (role, case)
            ]
            for one in rounds
        ]
        ratios = [judge.twin_logs(rounds, base), *(judge.logs(rounds, base, case) for case in cases)]
        read[name.split()[0]] = Recording(np.array(times), np.array(ratios).T)
    return read


def check(recorded: dict[str, Recording]) -> None:
    """Check that the shipped rule as it stands here is that of the judge."""
    for one in recorded.values():
        known = usual(one.times[:3], PRIOR, OUTLIER)
        estimate = judge.estimate(list(one.ratios[:3, 1]), judge.Pool(known.scale, known.freedom))
        assert estimate is not None
        ratio = estimate.ratio()
        _, half = RULES[0].holds(one.ratios[:3, 1], known, 2, 0.0)
        assert ratio.hi is not None and math.isclose(ratio.hi / ratio.ratio - 1, half)  # noqa: PT018 - one statement


class Count:
    """Coverage and half-widths of twins and of other ratios."""

    def __init__(self) -> None:
        self.held: dict[bool, list[bool]] = {True: [], False: []}
        self.widths: dict[bool, list[float]] = {True: [], False: []}

    def add(self, held: tuple[bool, float], *, twin: bool) -> None:
        self.held[twin].append(held[0])
        self.widths[twin].append(held[1])

    def shown(self) -> str:
        kinds = [twin for twin in (True, False) if self.held[twin]]
        covered = " / ".join(f"{100 * statistics.fmean(self.held[twin]):.1f}" for twin in kinds)
        widths = " / ".join(f"{100 * statistics.median(self.widths[twin]):.1f}" for twin in kinds)
        return f"{covered} ({widths})"


def replayed(rule: Rule, recorded: dict[str, Recording], runs: Iterable[Values], only: str = "") -> str:
    """Coverage of twins / others, and their half-widths, over replayed runs: each is the indices of its rounds."""
    count = Count()
    replay(count, rule, recorded, runs, only)
    return count.shown()


def replay(count: Count, rule: Rule, recorded: dict[str, Recording], runs: Iterable[Values], only: str = "") -> None:
    """Count the intervals of all groups, or of one."""
    for run in runs:
        groups = {name: one.times[run] for name, one in recorded.items()}
        for name, one in recorded.items():
            if only in ("", name):
                known = of_group(groups, name, rule.outlier)
                for arm, logs in enumerate(one.ratios[run].T, 1):
                    truth = 0.0 if arm == 1 else float(np.median(one.ratios[:, arm - 1]))
                    count.add(rule.holds(logs, known, arm, truth), twin=arm == 1)


def equal(chance: np.random.Generator, rounds: int) -> Values:
    return 0.02 / math.sqrt(2) * chance.standard_normal((rounds, 5))


def unequal(chance: np.random.Generator, rounds: int) -> Values:
    """Return log times of which the last arm has three times the noise of the first two."""
    return np.array([0.01, 0.01, 0.015, 0.02, 0.03]) * chance.standard_normal((rounds, 5))


def heavy(chance: np.random.Generator, rounds: int) -> Values:
    """Return log times with the tails of Student's t with 3 degrees of freedom."""
    return 0.02 / math.sqrt(6) * chance.standard_t(3, (rounds, 5))


def simulated(rule: Rule, noise: Callable[[np.random.Generator, int], Values], rounds: int) -> str:
    """Coverage and half-widths in simulated runs of three groups: of the two arms that come first / of the others."""
    chance, count = np.random.default_rng(SEED), Count()
    for _ in range(SIMULATED):
        groups = {name: noise(chance, rounds) for name in "abc"}
        for name, times in groups.items():
            known = of_group(groups, name, rule.outlier)
            for arm in range(1, times.shape[1]):
                count.add(rule.holds(times[:, arm] - times[:, 0], known, arm, 0.0), twin=arm == 1)
    return count.shown()


def intervals() -> None:
    recorded = recordings()
    check(recorded)
    total = len(next(iter(recorded.values())).times)
    expected(len(recorded), total)
    quiet()
    chance = np.random.default_rng(SEED)
    row = {size: [(np.arange(size) + first) % total for first in range(total)] for size in SIZES}
    any_order = {size: [chance.choice(total, size, replace=False) for _ in range(SHUFFLED)] for size in SIZES}
    table("recorded rounds in a row", SIZES, lambda rule, size: replayed(rule, recorded, row[size]))
    table("recorded rounds in any order", SIZES, lambda rule, size: replayed(rule, recorded, any_order[size]))
    table(
        "three rounds in any order, by model", recorded, lambda rule, name: replayed(rule, recorded, any_order[3], name)
    )
    for noise in (equal, unequal, heavy):
        table(f"simulated, {noise.__name__} noise", SIZES, lambda rule, size, noise=noise: simulated(rule, noise, size))


def table(title: str, columns: Iterable[Any], cell: Callable[[Rule, Any], str]) -> None:
    """Print a row for each rule: coverage of twins / others in per cent, and in brackets their half-widths."""
    columns = list(columns)
    print(f"| {title} | {' | '.join(map(str, columns))} |\n|{'---|' * (1 + len(columns))}")
    for rule in RULES:
        print(f"| {rule.name} | {' | '.join(cell(rule, column) for column in columns)} |", flush=True)
    print()


def expected(groups: int, total: int) -> None:
    """Print between which values the coverage of twins comes out in 19 of 20 recordings, if it is 95 % in truth."""
    chance = np.random.default_rng(SEED)
    print(f"| exact intervals, {groups} twins of {total} rounds | {' | '.join(map(str, SIZES))} |\n|{'---|' * 5}")
    cells = []
    for size in SIZES:
        noise = chance.standard_normal((RECORDINGS, groups, total))
        means = sum(np.roll(noise, -n, axis=2) for n in range(size)) / size
        covered = (np.abs(means) <= 1.959964 / math.sqrt(size)).mean(axis=(1, 2))
        low, high = np.quantile(covered, (0.025, 0.975))
        cells.append(f"{100 * low:.1f} to {100 * high:.1f}")
    print(f"| coverage of twins | {' | '.join(cells)} |\n")


def quiet() -> None:
    """Print the shipped rule on pairs that spread less: those of `recorded.csv`, as rounds of two arms.

    Which arm a process belongs to is drawn, as in `replay.py`.
    """
    pairs = recorded_pairs()
    spreads = ", ".join(f"{logs.std(ddof=1):.1%}" for _, logs in pairs.values())
    print(f"| pairs that spread by {spreads}, as rounds in a row | {' | '.join(map(str, SIZES))} |\n|{'---|' * 5}")
    cells = []
    for size in SIZES:
        chance, count = np.random.default_rng(SEED), Count()
        for _ in range(DRAWS):
            recorded = {}
            for name, (times, logs) in pairs.items():
                swap = chance.random(len(logs)) < 0.5
                recorded[name] = Recording(
                    np.where(swap[:, None], times[:, ::-1], times), np.where(swap, -logs, logs)[:, None]
                )
            total = min(len(logs) for _, logs in pairs.values())
            replay(count, RULES[0], recorded, [(np.arange(size) + first) % total for first in range(total)])
        cells.append(count.shown())
    print(f"| {RULES[0].name} | {' | '.join(cells)} |\n")


def recorded_pairs() -> dict[str, tuple[Values, Values]]:
    """Return for each case of `recorded.csv` the log times of both arms, a row a pair, and the pairs' log ratios."""
    turns: dict[tuple[str, str], dict[int, list[float]]] = {}
    for line in (FOLDER / "recorded.csv").read_text().splitlines():
        name, kind, index, _, steps = line.split(",")
        if kind.startswith("turns"):
            turns.setdefault((name, kind[-1]), {})[int(index)] = [float(x) for x in steps.split()]
    read = {}
    for name in sorted({name for name, _ in turns}):
        sides = [(turns[name, "a"][index], turns[name, "b"][index]) for index in sorted(turns[name, "a"])]
        times = [[float(np.median(np.log(side))) for side in pair] for pair in sides]
        read[name] = np.array(times), np.array([neighbour_ratio(first, second) for first, second in sides])
    return read


def calibrated(policy: PairPolicy) -> PairPolicy:
    """Return the policy with the levels of its looks."""
    calibrate.POLICY, calibrate.SEEN, calibrate.PATHS = policy, policy.looks, PATHS // 2
    rows: dict[str, list[list[float]]] = {"alarm": [], "ok": []}
    for shape in calibrate.TAKEN:
        tails, _ = calibrate.simulated(shape)
        rows["ok"].append(calibrate.levels(tails, 0.05))
        rows["alarm"] += [calibrate.levels(tails, rate) for rate in (0.005, 0.001)]
    lowest = {
        kind: tuple(math.floor(1000 * min(x)) / 1000 for x in zip(*found, strict=True)) for kind, found in rows.items()
    }
    return replace(policy, levels=lowest["alarm"], ok_levels=lowest["ok"])


def judged(values: Values, policy: PairPolicy, lent: judge.Pool | None = None) -> tuple[Values, Values, Values]:
    """Return which rows are `regressed` and `ok`, and after how many pairs.

    Untrimmed, and with the spread shrunk to that of earlier pairs if there is one.
    """
    cases = len(values)
    regressed, fine, used = np.zeros(cases, bool), np.zeros(cases, bool), np.full(cases, policy.looks[-1])
    for look, alarm, ok in zip(policy.looks, policy.levels, policy.ok_levels, strict=True):
        middle, variance, freedom = values[:, :look].mean(1), values[:, :look].var(1, ddof=1), float(look - 1)
        if lent is not None:
            variance = (lent.freedom * lent.scale**2 + freedom * variance) / (lent.freedom + freedom)
            freedom += lent.freedom
        error = np.sqrt(np.maximum(variance, policy.floor**2) / look)
        alarm_half, ok_half = (-stdtrit(freedom, x) * error for x in (alarm * policy.alpha, ok * policy.ok_alpha))
        left = ~regressed & ~fine
        now_fine = left & (np.abs(middle) + ok_half < policy.limit)
        now_slow = left & ~now_fine & (middle - alarm_half > policy.margin)
        used[now_fine | now_slow] = look
        fine |= now_fine
        regressed |= now_slow
    return regressed, fine, used


def seconds(pairs: float) -> float:
    return FIRST + SECOND + LATER * (pairs - 2)


def series() -> dict[str, Values]:
    """Return the log ratios of recorded pairs of equal arms, in the order of time."""
    logs = {f"{name}, stock fp32": one.ratios[:, 0] for name, one in recordings().items()}
    return logs | {name: ratios for name, (_, ratios) in recorded_pairs().items()}


def replayed_looks(policy: PairPolicy, logs: Values, effect: float) -> str:
    """Judge from each recorded pair on, also with the opposite sign: shares, and pairs and seconds in the median."""
    decisions = []
    for first in range(len(logs)):
        after = np.roll(logs, -first)[: policy.looks[-1]]
        for sign in (1, -1):
            pairs = list(sign * after + math.log1p(effect))
            decisions.append(next(x for x in (sequential.decide(pairs[:n], policy) for n in policy.looks) if x.done))
    slow, fine = (100 * statistics.fmean(x.outcome == name for x in decisions) for name in ("regressed", "ok"))
    used = [x.pairs for x in decisions]
    middle = statistics.median(used)
    return f"{slow:.0f} / {fine:.0f}, {middle:g} ({statistics.fmean(used):.1f}), {seconds(middle):.0f} s"


def looks() -> None:
    shipped = PairPolicy()
    policies = {"**shipped**": shipped}
    for some, rho in (
        ((4, 6, 10, 15, 24), 1.5),
        ((4, 6, 8, 10, 13, 17, 24), 1.0),
        ((5, 7, 9, 12, 16, 24), 1.0),
    ):
        policies[f"{', '.join(map(str, some))}; rho {rho:g}"] = calibrated(replace(shipped, looks=some, rho=rho))
    print(
        "| recorded pairs | looks | "
        + " | ".join(f"{effect:.0%} slower" for effect in (0, 0.03, 0.05, 0.10))
        + " |\n|"
        + "---|" * 6
    )
    for case, logs in series().items():
        for name, policy in policies.items():
            cells = [replayed_looks(policy, logs, effect) for effect in (0, 0.03, 0.05, 0.10)]
            print(f"| {case}, {logs.std(ddof=1):.1%} | {name} | {' | '.join(cells)} |", flush=True)
    print(
        "\n| simulated pairs | looks | "
        + " | ".join(f"{effect:.0%} slower" for effect in EFFECTS)
        + " |\n|"
        + "---|" * 7
    )
    earlier = judge.Pool(0.02, 6)
    rows = [(name, policy, None) for name, policy in policies.items()] + [
        ("shipped, spread of earlier pairs (2 %) worth 6", shipped, earlier)
    ]
    for spread in SPREADS:
        for name, policy, lent in rows:
            cells = []
            for effect in EFFECTS:
                noise = np.random.default_rng(SEED).standard_normal((CASES, policy.looks[-1]))
                slow, fine, used = judged(spread * noise + math.log1p(effect), policy, lent)
                cells.append(
                    f"{100 * slow.mean():.1f} / {100 * fine.mean():.1f}, {np.median(used):g} ({used.mean():.1f})"
                )
            print(f"| {spread:.1%} | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    print(LEGEND)
    intervals()
    looks()
