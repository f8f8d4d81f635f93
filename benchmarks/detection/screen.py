"""Error rates of the screen: a new session against those of a baseline, judged as a run does it.

A run has many cases. What regresses is measured again by twice the launches, and is an alarm if it regresses again.
The noise of the machine is what the accepted sessions of all its cases tell. "run" is the share of runs with an alarm
in any case, in per cent; the others are shares of cases.

Simulated: each case has its own spread between sessions, around that of the machine. A part of each session's shift is
common to all cases. Launches within a session have half of that spread; the second look shares the session's shift.

Recorded: `recorded.csv` (processes apart) and `rounds.jsonl` are series of launches of identical code. Each run takes
accepted sessions and a new one at random moments in them, of consecutive launches.

    PYTHONPATH=. python benchmarks/detection/screen.py
"""

import argparse
import csv
import json
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ipexperf.judge.policy import Policy
from ipexperf.judge.screen import decide
from ipexperf.judge.spread import compare, usual_noise
from ipexperf.running.measurer import AGAIN

HERE = Path(__file__).parent
SEED = 20261122
LAUNCHES = 3
NOISES = (0.005, 0.02, 0.08)
"""Spreads between the sessions of a machine."""
CASES = ((1, 0.0), (10, 0.0), (10, 0.5))
"""Cases of a run, and the log sd of their spreads."""
COMMON = 0.5
"""The share of a session's variance that all cases have in common."""
SESSIONS = (1, 2, 3, 6)
EFFECTS = (0.0, 0.05, 0.10, 0.15, 0.30)
COLUMNS = ("noise", "cases", "sessions", "run at 0 %", "ok at 0 %", *(f"alarms at {100 * x:.0f} %" for x in EFFECTS),
           "ok at 5 %")  # fmt: skip

Logs = list[float]
"""The logs of the launches of a session."""


def judged(cases: list[tuple[list[Logs], Logs, Logs]], effect: float) -> list[str]:
    """Return the outcome of each case: of its accepted sessions, a first look, and a second one."""
    policy = usual_noise([old for old, _, _ in cases], Policy().shared(len(cases)))
    found = []
    for old, first, second in cases:
        before = [list(map(math.exp, session)) for session in old]
        looks = [[math.exp(value) * (1 + effect) for value in look] for look in (first, second)]
        outcome = decide(compare(looks[0], before, policy), policy)
        if outcome == "regressed" and decide(compare(looks[1], before, policy), policy) != "regressed":
            outcome = "inconclusive"
        found.append(str(outcome))
    return found


def simulated(
    chance: np.random.Generator, noise: float, count: int, apart: float, sessions: int
) -> list[tuple[list[Logs], Logs, Logs]]:
    """Return the launches of a run's cases, of identical code."""
    shared = chance.normal(size=sessions + 1)
    cases = []
    for scale in noise * np.exp(apart * chance.normal(size=count)):
        own = chance.normal(size=sessions + 1)
        shifts = scale * (math.sqrt(COMMON) * shared + math.sqrt(1 - COMMON) * own)
        old = [[float(x) for x in shift + scale / 2 * chance.normal(size=LAUNCHES)] for shift in shifts[:-1]]
        first, second = (
            [float(x) for x in shifts[-1] + scale / 2 * chance.normal(size=size)]
            for size in (LAUNCHES, AGAIN * LAUNCHES)
        )
        cases.append((old, first, second))
    return cases


def series() -> Iterator[tuple[str, list[Logs]]]:
    """Return the recorded series: what they are of, and the logs of the launches of each case in the order of time."""
    apart: dict[str, Logs] = defaultdict(list)
    with (HERE / "recorded.csv").open() as file:
        for case, how, _, _, seconds in csv.reader(file):
            if how == "apart":
                apart[case].append(math.log(statistics.median(map(float, seconds.split()))))
    yield "processes apart", list(apart.values())
    rounds = map(json.loads, (HERE / "rounds.jsonl").read_text().splitlines())
    kinds: dict[str, dict[str, Logs]] = {}
    for one in sorted(rounds, key=lambda x: x["started_at"]):
        for seat in one["seats"]:
            if seat["role"] != "twin":
                times = kinds.setdefault(one["start"], {}).setdefault(seat["case"], [])
                times.append(math.log(statistics.median(seat["times"][0])))
    for start, found in kinds.items():
        yield f"rounds, {start}", list(found.values())


def replayed(chance: np.random.Generator, cases: list[Logs], sessions: int) -> list[tuple[list[Logs], Logs, Logs]]:
    """Return a run at random moments of recorded series. No launch is in two sessions."""
    long = LAUNCHES * (1 + AGAIN)
    spare = min(map(len, cases)) - sessions * LAUNCHES - long
    starts = np.sort(chance.integers(0, spare + 1, size=sessions + 1))
    new = int(chance.integers(0, sessions + 1))
    sizes = [long if place == new else LAUNCHES for place in range(sessions + 1)]
    places = [int(start) + sum(sizes[:place]) for place, start in enumerate(starts)]
    found = []
    for times in cases:
        parts = [times[place : place + size] for place, size in zip(places, sizes, strict=True)]
        look = parts.pop(new)
        found.append((parts, look[:LAUNCHES], look[LAUNCHES:]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="runs a row (default: %(default)s)")
    runs = parser.parse_args().runs
    recorded = list(series())
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    kinds = [(f"{100 * noise:.1f} %, cases {100 * apart:.0f} % apart", count, (noise, count, apart))
             for noise in NOISES for count, apart in CASES]  # fmt: skip
    rows = [(name, count, given) for name, count, given in kinds]
    rows += [(name, len(cases), cases) for name, cases in recorded]
    for index, (name, count, given) in enumerate(rows):
        for sessions in SESSIONS:
            if isinstance(given, list) and min(map(len, given)) < (sessions + 1 + AGAIN) * LAUNCHES + 3:
                continue
            print(f"row {index + 1} of {len(rows)}, sessions: {sessions}", file=sys.stderr)
            found: dict[float, list[list[str]]] = {}
            for effect in EFFECTS:
                chance = np.random.default_rng([SEED, index, sessions])
                found[effect] = [
                    judged(
                        replayed(chance, given, sessions)
                        if isinstance(given, list)
                        else simulated(chance, *given, sessions),
                        effect,
                    )
                    for _ in range(runs)
                ]

            def share(effect: float, outcome: str, found: dict[float, list[list[str]]] = found) -> str:
                return f"{100 * statistics.fmean(one == outcome for run in found[effect] for one in run):.1f}"

            alarms = 100 * statistics.fmean("regressed" in run for run in found[0.0])
            numbers = [f"{alarms:.1f}", share(0.0, "ok"), *(share(x, "regressed") for x in EFFECTS), share(0.05, "ok")]
            print("| " + " | ".join([name, str(count), str(sessions), *numbers]) + " |", flush=True)


if __name__ == "__main__":
    main()
