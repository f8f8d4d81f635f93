"""How often `ipexperf hosts` names the odd one of several equal hosts, and how often a usual one.

Simulated: each host has a place of its own, each night a level that all share, each measurement noise. One host is
slower, from the first night on or from the middle of them.
"""

from __future__ import annotations

import argparse
import math
import random
import sys

from ipexperf.judge import hosts
from ipexperf.judge.hosts import Sight

CASES = 8
FLEETS = ((4, 10), (6, 10), (6, 20), (12, 10), (12, 20))
"""Hosts and nights."""
SETTINGS = ((0.003, 0.01), (0.01, 0.02))
"""Standard deviations between hosts, and of one measurement."""
SHIFTS = (0.0, 0.02, 0.04, 0.08)


def sights(
    chance: random.Random, count: int, nights: int, between: float, noise: float, shift: float, begins: int
) -> list[Sight]:
    own = [chance.gauss(0, between) for _ in range(count)]
    seen = []
    for night in range(nights):
        level = chance.gauss(0, 0.05)
        for case in range(CASES):
            for host in range(count):
                odd = shift if host == 0 and night >= begins else 0.0
                place = level + own[host] + odd + chance.gauss(0, noise)
                seen.append(Sight(f"{night:03}", f"h{host}", str(case), math.exp(place)))
    return seen


def trial(chance: random.Random, *setting: float, begins: int) -> tuple[bool, bool]:
    """Whether the odd host was named, and whether any other was."""
    count, nights, between, noise, shift = setting
    seen = sights(chance, int(count), int(nights), between, noise, shift, begins)
    named = {one.host for one in hosts.judge(seen) if one.state in ("slower", "faster")}
    return "h0" in named, bool(named - {"h0"}) or (shift == 0 and bool(named))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    write = sys.stdout.write
    write("| hosts | nights | spread of hosts | noise | slower by | from the first night | from the middle | usual |\n")
    write("|---|---|---|---|---|---|---|---|\n")
    for between, noise in SETTINGS:
        for count, nights in FLEETS:
            for shift in SHIFTS:
                found = []
                wrong = 0
                for begins in (0, nights // 2):
                    chance = random.Random(f"{arguments.seed} {between} {count} {nights} {shift} {begins}")  # noqa: S311
                    told = [
                        trial(chance, count, nights, between, noise, shift, begins=begins)
                        for _ in range(arguments.trials)
                    ]
                    found.append(sum(odd for odd, _ in told) / len(told))
                    wrong += sum(other for _, other in told)
                names = (f"{share:.1%}" if shift else "-" for share in found)
                write(
                    f"| {count} | {nights} | {between:.1%} | {noise:.0%} | {shift:.0%} | {' | '.join(names)} | "
                    f"{wrong / (2 * arguments.trials):.2%} |\n"
                )
                sys.stdout.flush()


if __name__ == "__main__":
    main()
