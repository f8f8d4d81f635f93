"""False alarm and detection rates of rules on simulated cases with a known slowdown.

The noise has the components that were measured on shared machines: a level of each process (due to its memory layout),
a slowly varying state of the machine that neighbouring processes share, and noise of single steps. Half of the variance
between processes belongs to the process and cannot be cancelled, so the pairs of a scenario have the same spread as its
processes. In `measured`, pairs spread by 1.5 % and processes apart by 17 %, as on the machine of the study of turns.

Our rule is compared with common ones, written from their documentation: pytest-benchmark's
`--benchmark-compare-fail=mean:5%`, a flat limit of 7 % on the median of runs, Mann-Whitney over the pooled iterations,
and Welch's t-test over runs. As usual, they measure one arm after the other.

    python benchmarks/detection/simulate.py > benchmarks/detection/table.txt
"""

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ipexperf.judge import sequential
from ipexperf.judge.policy import PairPolicy

SEED = 20261121
CASES = 2000
EFFECTS = (0.0, 0.02, 0.03, 0.05, 0.08, 0.10)
POLICY = PairPolicy()
RUNS, ITERATIONS = 5, 20
"""Runs and iterations of an arm for the other rules."""
START, SAMPLING = 8.0, 2.5
"""Seconds of a process before its first sample, and of sampling. Only for the column of seconds."""
TURN_NOISE, STEP_NOISE, MEMORY = 0.004, 0.03, 0.7
"""Log sd of a pair's median of 30 turns and of one step, and the autocorrelation of the machine's state."""
ALPHA, MEAN_LIMIT, FLAT_LIMIT = 0.05, 0.05, 0.07
Values = NDArray[np.float64]
Alarms = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class World:
    """A kind of noise. Values are log standard deviations or shares."""

    name: str
    own: float
    """Spread of the levels of processes."""
    state: float
    """Spread of the machine's state."""
    hit: float = 0.0
    """Share of processes that are disturbed, by 15 % on average."""
    drift: float = 0.0
    """Slowdown of the machine from the first process to the last."""
    modes: float = 0.0
    """Slowdown of the second mode, in which three of ten processes are."""

    def levels(self, chance: np.random.Generator, cases: int, processes: int) -> Values:
        """Return the levels of processes."""
        found = chance.normal(0, self.own, (cases, processes))
        found += self.modes * (chance.random(found.shape) < 0.3)
        hits: Values = chance.exponential(0.15, found.shape) * (chance.random(found.shape) < self.hit)
        return found + hits

    def states(self, chance: np.random.Generator, cases: int, processes: int) -> Values:
        """Return the machine's states for consecutive processes."""
        found = chance.normal(0, self.state, (cases, processes))
        for index in range(1, processes):
            found[:, index] = MEMORY * found[:, index - 1] + math.sqrt(1 - MEMORY**2) * found[:, index]
        return found + np.linspace(0, self.drift, processes)


def spread(name: str, between: float, **more: float) -> World:
    """Return a world with this spread of processes: half of the variance is their own, half the machine's."""
    return World(name, between / math.sqrt(2), between / math.sqrt(2), **more)


WORLDS = (
    spread("spread 1.5 %", 0.015),
    World("measured", 0.015 / math.sqrt(2), 0.17),
    spread("spread 2 %", 0.02),
    spread("spread 4 %", 0.04),
    spread("spread 8 %", 0.08),
    spread("2 %, 10 % contaminated", 0.02, hit=0.1),
    spread("2 %, drift of 5 %", 0.02, drift=0.05),
    spread("2 %, bimodal, 6 % apart", 0.02, modes=0.06),
)


def pairs(world: World, chance: np.random.Generator, effect: float) -> dict[str, float]:
    """Our rule: pairs that take turns until a decision. Neighbours share the machine's state, which cancels."""
    most = POLICY.looks[-1]
    sides = world.levels(chance, CASES, 2 * most).reshape(CASES, most, 2)
    ratios = math.log1p(effect) + sides[:, :, 1] - sides[:, :, 0] + chance.normal(0, TURN_NOISE, (CASES, most))
    return judged(ratios.tolist())


def judged(cases: Sequence[Sequence[float]]) -> dict[str, float]:
    """Return the share of each outcome, and the pairs per case."""
    outcomes, used = [], 0
    for case in cases:
        for look in POLICY.looks:
            decision = sequential.decide(case[:look], POLICY)
            if decision.done:
                break
        outcomes.append(decision.outcome)
        used += decision.pairs
    shares = {name: outcomes.count(name) / len(cases) for name in ("regressed", "ok", "improved", "inconclusive")}
    return {**shares, "pairs": used / len(cases)}


def shown(found: dict[float, dict[str, float]], pair_seconds: float) -> list[str]:
    """Format the results of our rule at each slowdown as a row."""
    decided = [found[effect]["regressed"] / max(1 - found[effect]["inconclusive"], 1e-9) for effect in (0.05, 0.10)]
    undecided = [found[effect]["inconclusive"] for effect in (0.0, 0.05)]
    seconds = [f"{found[effect]['pairs'] * pair_seconds:.0f}" for effect in (0.0, 0.05)]
    alarms = [found[effect]["regressed"] for effect in EFFECTS]
    return [*map(hundred, [*alarms, *decided, *undecided]), *seconds]


def runs(world: World, chance: np.random.Generator, effect: float) -> tuple[Values, Values]:
    """Return the steps of both arms in seconds: first all runs of one, then all runs of the other."""
    levels = world.levels(chance, CASES, 2 * RUNS) + world.states(chance, CASES, 2 * RUNS)
    levels[:, RUNS:] += math.log1p(effect)
    steps = np.exp(levels[:, :, None] + chance.normal(0, STEP_NOISE, (CASES, 2 * RUNS, ITERATIONS)))
    return steps[:, :RUNS], steps[:, RUNS:]


def mean_of_one_run(old: Values, new: Values) -> Alarms:
    """pytest-benchmark: (current / compared - 1) * 100 > 5, of the mean of one run each."""
    return new[:, 0].mean(axis=1) / old[:, -1].mean(axis=1) - 1 > MEAN_LIMIT


def flat(old: Values, new: Values) -> Alarms:
    """Alarm if the median of the runs' medians has risen by more than 7 %."""
    return np.median(np.median(new, axis=2), axis=1) / np.median(np.median(old, axis=2), axis=1) - 1 > FLAT_LIMIT


def pooled(old: Values, new: Values) -> Alarms:
    """Mann-Whitney over all iterations of all runs: p < 0.05, and slower."""
    before, after = (side.reshape(len(side), -1) for side in (old, new))
    p = stats.mannwhitneyu(before, after, axis=1, method="asymptotic").pvalue
    return (p < ALPHA) & (np.median(after, axis=1) > np.median(before, axis=1))


def welch(old: Values, new: Values) -> Alarms:
    """Welch's t-test over the runs' medians: p < 0.05, and slower."""
    sides = [np.median(side, axis=2) for side in (old, new)]
    p = stats.ttest_ind(*sides, axis=1, equal_var=False).pvalue
    return (p < ALPHA) & (sides[1].mean(axis=1) > sides[0].mean(axis=1))


RULES: dict[str, tuple[Callable[[Values, Values], Alarms], int]] = {
    "compare-fail mean:5%": (mean_of_one_run, 1),
    "flat 7 %": (flat, RUNS),
    "Mann-Whitney, pooled": (pooled, RUNS),
    "Welch over runs": (welch, RUNS),
}
COLUMNS = ("rule", "alarms at 0 %", "at 2 %", "caught at 3 %", "at 5 %", "at 8 %", "at 10 %",
           "of decided, 5 %", "of decided, 10 %", "undecided at 0 %", "at 5 %", "seconds at 0 %", "at 5 %")  # fmt: skip


def hundred(share: float) -> str:
    return f"{100 * share:.1f}"


def ours(world: World, chance: np.random.Generator) -> list[str]:
    found = {effect: pairs(world, chance, effect) for effect in EFFECTS}
    return [world.name, "**pairs, sequential**", *shown(found, 2 * (START + SAMPLING))]


def theirs(world: World, chance: np.random.Generator) -> list[list[str]]:
    alarms: dict[str, list[float]] = {name: [] for name in RULES}
    for effect in EFFECTS:
        sides = runs(world, chance, effect)
        for name, (rule, _) in RULES.items():
            alarms[name].append(float(rule(*sides).mean()))
    rows = []
    for name, (_, count) in RULES.items():
        seconds = f"{2 * count * (START + SAMPLING):.0f}"
        rows.append([world.name, name, *map(hundred, alarms[name]), "-", "-", "-", "-", seconds, seconds])
    return rows


def main() -> None:
    begin = time.monotonic()
    print("| " + " | ".join(("noise", *COLUMNS)) + " |\n|" + "---|" * (1 + len(COLUMNS)))
    for index, world in enumerate(WORLDS):
        chance = np.random.default_rng([SEED, index])
        for row in (ours(world, chance), *theirs(world, chance)):
            print("| " + " | ".join(row) + " |")
        print(f"{world.name}: {time.monotonic() - begin:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
