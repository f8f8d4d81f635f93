"""The cost of a launch's cold start, fresh and forked, and whether forked launches have the samples of fresh ones.

A round has one process of each kind: a fresh worker, a forked one, and bare.py with the same case. Each is timed from
its request until it is ready to run steps, one after the other in random order. Then the two workers take turns with a
third, the anchor, which lives through all rounds. Ratios to the anchor remove the drift of the machine, and what still
varies between launches of a kind is the spread of that kind.
"""

import argparse
import contextlib
import dataclasses
import math
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from overhead import bare, interval
from scipy import stats

from ipexperf import run
from ipexperf.case import NetworkCase
from ipexperf.commands import planning
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.worker import Worker
from ipexperf.judge import ratios

BARE = ("train", "infer", "infer_jit")
"""Modes that bare.py supports."""
FRESH, FORK = "fresh", "fork"
KINDS = (FRESH, FORK)


@dataclasses.dataclass(frozen=True)
class Round:
    """Seconds of the cold start and of the turns of each kind."""

    cold: dict[str, float]
    turns: dict[str, list[float]]


def ready(case: NetworkCase, conditions: Conditions, stack: contextlib.ExitStack) -> Worker:
    """Yield a prepared worker."""
    worker = stack.enter_context(conditions.worker())
    worker.prepare(case.to_json(), asdict(conditions.settings))
    return worker


def step(worker: Worker, samples: int, block: int) -> float:
    return sum(wall for wall, _, _ in worker.ask("sample", count=samples, block=block)["samples"])


def one_round(
    case: NetworkCase,
    kinds: dict[str, Conditions],
    anchor: tuple[Worker, int],
    told: argparse.Namespace,
    chance: random.Random,
) -> Round:
    """Start one process of each kind one after the other, then let the workers take turns with the anchor."""
    cold: dict[str, float] = {}
    workers: dict[str, Worker] = {}
    with contextlib.ExitStack() as stack:
        starts: dict[str, Callable[[], Any]] = {
            name: lambda conditions=conditions: ready(case, conditions, stack) for name, conditions in kinds.items()
        }
        starts["bare"] = lambda: stack.enter_context(bare(case, kinds[FRESH]))
        for name in chance.sample(list(starts), len(starts)):
            begin = time.perf_counter()
            process = starts[name]()
            cold[name] = time.perf_counter() - begin
            if name in kinds:
                workers[name] = process
        for worker in workers.values():
            worker.ask("warm")
        workers["anchor"] = anchor[0]
        turns: dict[str, list[float]] = {name: [] for name in workers}
        for turn in range(told.turns):
            # The anchor in the middle, next to both others.
            order = [FRESH, "anchor", FORK]
            for name in order if turn % 2 else reversed(order):
                turns[name].append(step(workers[name], told.turn_samples, anchor[1]))
    return Round(cold, turns)


def spreads(logs: dict[str, list[float]]) -> str:
    """Format the spread between launches of each kind, and their ratio with the interval of a ratio of variances."""
    found = {name: statistics.stdev(values) for name, values in logs.items()}
    text = ", ".join(f"{name} {value:.4f}" for name, value in found.items())
    freedom = len(logs[FRESH]) - 1
    ratio = found[FORK] / found[FRESH]
    half = math.sqrt(stats.f.ppf(0.975, freedom, freedom))
    return f"{text}; fork over fresh {ratio:.2f}, 95 % interval {ratio / half:.2f} to {ratio * half:.2f}"


def tell(case: NetworkCase, rounds: list[Round]) -> None:
    """Print the results of one case."""
    print(f"{case.id} (batch {case.batch}), {len(rounds)} rounds")
    print("  cold start over the bare script's imports, build and trace:")
    for name in KINDS:
        print(f"    {name}: {interval([math.log(x.cold[name] / x.cold['bare']) for x in rounds])}")
    print("  steps of a forked launch over those of a fresh one:")
    print(f"    {interval([ratios.neighbour_ratio(x.turns[FRESH], x.turns[FORK]) for x in rounds])}")
    if len(rounds) > 1:
        logs = {name: [ratios.neighbour_ratio(x.turns["anchor"], x.turns[name]) for x in rounds] for name in KINDS}
        print(f"  spread between launches (log sd against the anchor): {spreads(logs)}", flush=True)


def measure(case: NetworkCase, conductor: Conductor, told: argparse.Namespace, chance: random.Random) -> None:
    """Run all rounds of one case, after loading its files into the page cache."""
    fresh = conductor.ready(case)
    with contextlib.ExitStack() as stack:
        forked = stack.enter_context(conductor.forking([(case, fresh)], arms=2)).forked(case, fresh)
        if forked is None:
            print(f"{case.id}: left out, it cannot be forked")
            return
        anchor = ready(case, fresh, stack)
        block = int(anchor.ask("warm")["block"])
        rounds = []
        for number in range(told.rounds):
            print(f"  {case.id}: round {number + 1} of {told.rounds}", file=sys.stderr)
            kinds = {FRESH: fresh, FORK: forked}
            rounds.append(one_round(case, kinds, (anchor, block), told, chance))
    tell(case, rounds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="processes of each kind (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=20, help="turns of each worker a round (default: %(default)s)")
    parser.add_argument("--turn-samples", type=int, default=4, help="samples a turn (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="of the random start order")
    planning.add_options(parser)
    told = parser.parse_args()
    if min(told.rounds, told.turns, told.turn_samples) < 1:
        parser.error("--rounds, --turns and --turn-samples must be at least 1")
    chance = random.Random(told.seed)  # noqa: S311 - a start order, no secret
    options = planning.resolve(told)
    conductor = Conductor(options, Path.cwd(), lambda text: print(f"  {text}", file=sys.stderr))
    with contextlib.closing(conductor):
        for case in run.plan(options).cases:
            if case.mode not in BARE:
                print(f"{case.id}: left out, bare.py has no mode {case.mode}")
                continue
            measure(case, conductor, told, chance)
    return 0


if __name__ == "__main__":
    sys.exit(main())
