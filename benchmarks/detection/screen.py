"""Error rates of the screen, simulated: a new session against those of a baseline, with and without the pool.

The noise: each case has its own spread between sessions, around that of the machine. A part of each session's shift is
common to all cases. Launches within a session have half of that spread. Each row simulates runs of many cases, all
slower by the same factor. "alarms" are the cases called `regressed`, in per cent.

    PYTHONPATH=. python benchmarks/detection/screen.py
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from dataclasses import replace

import numpy as np

from ipexperf.judge.policy import Policy
from ipexperf.judge.screen import decide
from ipexperf.judge.spread import compare, usual_noise

SEED = 20261122
CASES = 10
APART = 0.5
"""Log sd of the spreads of the cases on a machine."""
NOISES = (0.005, 0.02, 0.08)
COMMON = (0.0, 0.5, 1.0)
SESSIONS = (3, 4, 6, 12)
EFFECTS = (0.0, 0.05, 0.10, 0.20)
COLUMNS = ("noise", "in common", "sessions", "pool", *(f"{what} at {100 * effect:.0f} %" for effect in EFFECTS
           for what in ("alarms", "ok")))  # fmt: skip


def sessions(chance: np.random.Generator, noise: float, common: float, count: int) -> list[list[list[float]]]:
    """Return sessions of three launches of each case in seconds, for identical code."""
    own = noise * np.exp(APART * chance.normal(size=CASES))
    shared = chance.normal(size=count)
    found = []
    for scale in own:
        shifts = scale * (math.sqrt(common) * shared + math.sqrt(1 - common) * chance.normal(size=count))
        found.append([list(np.exp(shift + scale / 2 * chance.normal(size=3))) for shift in shifts])
    return found


def run(
    chance: np.random.Generator, noise: float, common: float, count: int, effect: float
) -> dict[bool, Counter[str]]:
    """Return the outcomes of the cases of a run, with the pool and without."""
    cases = sessions(chance, noise, common, count + 1)
    before = [[[math.log(value) for value in one] for one in case[:-1]] for case in cases]
    policy = Policy().shared(CASES)
    pool = usual_noise([[float(np.mean(one)) for one in case] for case in before], policy)
    found = {}
    for pooled in (False, True):
        known = replace(policy, tau_pool=pool) if pooled else policy
        found[pooled] = Counter(
            decide(compare([value * (1 + effect) for value in case[-1]], case[:-1], known), known) for case in cases
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="runs of ten cases a row (default: %(default)s)")
    runs = parser.parse_args().runs
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    rows = [(noise, common, count) for noise in NOISES for common in COMMON for count in SESSIONS]
    for index, (noise, common, count) in enumerate(rows):
        print(f"row {index + 1} of {len(rows)}", file=sys.stderr)
        told: dict[bool, list[str]] = {False: [], True: []}
        for effect in EFFECTS:
            chance = np.random.default_rng([SEED, index])
            total: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
            for _ in range(runs):
                for pooled, found in run(chance, noise, common, count, effect).items():
                    total[pooled] += found
            for pooled, seen in total.items():
                told[pooled] += [f"{100 * seen[name] / (runs * CASES):.1f}" for name in ("regressed", "ok")]
        for pooled, numbers in told.items():
            row = [f"{100 * noise:.1f} %", f"{100 * common:.0f} %", str(count), "yes" if pooled else "no", *numbers]
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
