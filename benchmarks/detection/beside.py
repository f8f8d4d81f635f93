"""How much others' steps between its turns slow a case down: each case beside the others of its group, and alone.

All arms of a group are alive in both situations. After each rotation, in which every arm has its turn as in a round,
each arm steps alone until it is warm, and then for the length of its turn. Both times are seconds apart and of the same
process, so their ratio shows the effect of the neighbours' turns. It is also measured without the warm-up of a turn.

    python benchmarks/detection/beside.py --model resnet18 --mode infer,infer_jit
"""

import argparse
import contextlib
import math
import random
import statistics
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from ipexperf import run
from ipexperf.commands import planning
from ipexperf.compare import order, together
from ipexperf.compare.arm import Arm
from ipexperf.compare.players import WorkerPlayer
from ipexperf.compare.round import Effort
from ipexperf.conduct.conductor import Conductor
from ipexperf.plan import groups
from ipexperf.plan.options import WITHOUT

ALONE_STEPS = 12
"""Steps to make an arm completely warm, or fewer if they would take more than half a second."""


def rotation(players: list[WorkerPlayer], places: list[int], warm: list[int]) -> dict[int, float]:
    """Run each arm's turn in this order, after its warm steps. Return seconds per step."""
    times = {}
    for place in places:
        players[place].shape = replace(players[place].shape, warm=warm[place])
        times[place] = players[place].turn().step
    return times


def measure(arms: list[Arm], rotations: int, chance: random.Random) -> dict[str, dict[str, list[float]]]:
    """Return for each case the log ratios of its turns to its steps alone, with the warm-up of a turn and without."""
    ratios: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with contextlib.ExitStack() as stack:
        players = [WorkerPlayer(arm, stack) for arm in arms]
        together._start(players, chance)  # noqa: SLF001 - as a round does
        together._warm(players, Effort())  # noqa: SLF001 - as a round does
        found = [one.shape.warm for one in players]
        alone = [max(2, min(ALONE_STEPS, math.ceil(0.5 / max(one.step, 1e-6)))) for one in players]
        orders = order.orders(len(players), chance)
        for number in range(rotations):
            kinds = {"warm": found, "cold": [0] * len(players)}
            for kind in sorted(kinds, reverse=bool(number % 2)):
                taken = rotation(players, next(orders), kinds[kind])
                for place, one in enumerate(players):
                    one.shape = replace(one.shape, warm=alone[place])
                    ratios[one.arm.case.id][kind].append(math.log(taken[place] / one.turn().step))
        for one, warm in zip(players, found, strict=True):
            ratios[one.arm.case.id]["steps"] = [float(warm)]
    return ratios


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rotations", type=int, default=30, help="in each of the processes (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=3, help="fresh processes of each case (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="of the random orders")
    planning.add_options(parser)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)  # noqa: S311 - a start order, no secret
    options = replace(planning.resolve(arguments), without=WITHOUT)
    conductor = Conductor(options, Path.cwd(), lambda text: print(f"  {text}", file=sys.stderr))
    for group in groups.groups(run.plan(options).cases):
        arms = [Arm(case, conductor.ready(case)) for case in group.cases]
        parts = [measure(arms, arguments.rotations, chance) for _ in range(arguments.processes)]
        print(f"\n{group.name}: a turn among {len(arms)} arms over the same case alone\n")
        print("| case | warm steps | with them | without | rotations |\n|---|---|---|---|---|")
        for name in parts[0]:
            logs = {kind: [x for part in parts for x in part[name][kind]] for kind in ("warm", "cold")}
            told = " | ".join(f"{math.exp(statistics.median(logs[kind])):.3f}" for kind in ("warm", "cold"))
            steps = ", ".join(f"{part[name]['steps'][0]:.0f}" for part in parts)
            print(f"| {name} | {steps} | {told} | {len(logs['warm'])} |", flush=True)
    conductor.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
