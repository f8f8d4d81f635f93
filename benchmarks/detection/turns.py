"""How turns of two equal processes differ, step by step: record them beside neighbours, and replay how to judge them.

A recorded pair is two fresh processes with the same encoder, whose step takes 30 to 40 ms on two cores. They take
turns of one length after another. Every step is recorded, with its wall time, CPU time and run delay, and for every
half second whether the machine was busy.

    python benchmarks/detection/turns.py record turns.jsonl --pairs 10 --neighbours 0 1 2
    python benchmarks/detection/turns.py replay turns.jsonl
"""

import argparse
import itertools
import json
import math
import multiprocessing
import os
import random
import statistics
import sys
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

from ipexperf.bench.machine import placement
from ipexperf.compare.sequence import OF_LONGEST
from ipexperf.conduct import gate
from ipexperf.judge import sequential, stalls
from ipexperf.judge.policy import PairPolicy
from ipexperf.judge.ratios import neighbour_ratio
from ipexperf.ratio import Ratio
from ipexperf.result import Sample

LENGTHS = (3, 5, 9)
"""Steps of a turn, the untimed first one included."""
SECONDS = 2.0
"""Turns of one length for so long, before those of the next."""
ROUNDS = 3
SHARES, PERIODS = (0.0, 0.02, 0.05, 0.10, 0.20), (5, 10, 17, 30, 50)
"""Planted stalls: how much longer the mean step is, and in every how many steps."""


def work(line: Any) -> None:
    """Step as often as asked for, and send what each step took."""
    import torch

    from ipexperf.bench import measure

    torch.manual_seed(1)
    encoder = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True).eval()
    batch = torch.randn(8, 128, 256)

    def step() -> None:
        with torch.no_grad():
            encoder(batch)

    while count := line.recv():
        samples = measure.sample(step, lambda: None, count, 1)
        measure.threads.settle(0.5)
        line.send(samples)


def neighbour(_: int) -> None:
    while True:
        math.factorial(2000)


def pair(neighbours: int) -> dict[str, Any]:
    """Record a pair of fresh processes beside so many neighbours."""
    context = multiprocessing.get_context("spawn")
    lines, processes = [], []
    for _ in range(2):
        ours, theirs = context.Pipe()
        processes.append(context.Process(target=work, args=(theirs,), daemon=True))
        processes[-1].start()
        lines.append(ours)
    for line in lines * 2:
        line.send(15)
        line.recv()
    others = [context.Process(target=neighbour, args=(0,), daemon=True) for _ in range(neighbours)]
    for other in others:
        other.start()
    time.sleep(1.0 if others else 0.0)
    cores = placement.allowed()
    rotations, begun = [], time.monotonic()
    for length in LENGTHS * ROUNDS:
        until = time.monotonic() + SECONDS * (1 + neighbours)
        before = gate.read(cores, *(process.pid or 0 for process in processes))
        stretch: list[dict[str, Any]] = []
        while time.monotonic() < until:
            at, turns = time.monotonic(), {}
            for place in random.sample(range(2), 2):
                lines[place].send(length)
                turns[place] = lines[place].recv()
            stretch.append({"length": length, "seconds": time.monotonic() - at, "turns": [turns[0], turns[1]]})
            if time.monotonic() - before.at >= 0.5:
                after = gate.read(cores, *(process.pid or 0 for process in processes))
                samples = [Sample(*x) for one in stretch for turn in one["turns"] for x in turn]
                shares = gate.between(before, after, samples, len(cores))
                rotations += [{**one, "busy": bool(gate.contended(shares, gate.POLICY))} for one in stretch]
                before, stretch = after, []
    for process in (*processes, *others):
        process.kill()
    return {"neighbours": neighbours, "seconds": time.monotonic() - begun, "rotations": rotations}


def record(file: Path, pairs: int, beside: list[int]) -> None:
    os.environ |= {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "30000", "KMP_BLOCKTIME": "1"}
    for number, neighbours in itertools.product(range(pairs), beside):
        found = pair(neighbours)
        with file.open("a") as out:
            out.write(json.dumps(found) + "\n")
        print(f"pair {number + 1} of {pairs} beside {neighbours}: {len(found['rotations'])} rotations", file=sys.stderr)


Turns = list[list[Sample]]
"""The timed samples of each turn of an arm."""


def planted(turns: Turns, share: float, period: int, chance: random.Random) -> Turns:
    """The same turns with a stall in each step of that number, timed or not, which make the mean longer by a share."""
    typical = statistics.fmean(stalls.undisturbed([x for turn in turns for x in turn]))
    extra, step, slowed = stalls.extra_steps(chance.randrange(10**6)), chance.randrange(period), []
    for turn in turns:
        step += 1 + next(extra)
        longer = [share * period * typical * ((step + place) % period == 0) for place in range(len(turn))]
        slowed.append([Sample(x.wall + more, x.cpu, x.delay) for x, more in zip(turn, longer, strict=True)])
        step += len(turn)
    return slowed


def mean_of(turns: Turns) -> float:
    return statistics.fmean(stalls.undisturbed([sample for turn in turns for sample in turn]))


def typical_of(turns: Turns) -> float:
    return statistics.median(sample.wall for turn in turns for sample in turn)


def compared(pool: list[tuple[Turns, Turns]], share: float, period: int, chance: random.Random) -> sequential.Decision:
    """A comparison of the mean steps of pairs from this pool, as a run makes it."""
    policy, means, longest = replace(PairPolicy(), trim=0.0), [], []
    while True:
        a, b = chance.choice(pool)
        start = chance.randrange(len(a))
        a, b = ([*turns[start:], *turns[:start]][:16] for turns in (a, b))
        a, b = chance.sample((a, b), 2)  # so that no level of one process is in all of them
        b = planted(b, share, period, chance)
        level = math.sqrt(typical_of(a) * typical_of(b))
        means.append((mean_of(a) / level, mean_of(b) / level))
        longest += [stalls.of_longest([sample for turn in turns for sample in turn]) ** 2 for turns in (a, b)]
        if sequential.due(len(means), policy):
            before, now = (statistics.fmean(side) for side in zip(*means, strict=True))
            logs = [math.log(now / before) + y / now - x / before for x, y in means]
            floor = max(policy.floor, OF_LONGEST * math.sqrt(2 * statistics.fmean(longest)))
            decision = sequential.decide(logs, replace(policy, floor=floor))
            if decision.done:
                return decision


def coverage(pool: list[tuple[Turns, Turns]], trials: int) -> None:
    """How often the interval of the mean step covers the planted truth."""
    print("| mean longer by | every | covered | below it | above it | regressed | ok | pairs, median |")
    print("|---|---|---|---|---|---|---|---|")
    chance = random.Random(1)  # noqa: S311 - trials, no secret
    for share, period in itertools.product(SHARES, PERIODS):
        found = [compared(pool, share, period, chance) for _ in range(trials)]
        ratios = [one.verdict.ratio or Ratio(math.nan) for one in found]
        below = sum((ratio.hi or 0.0) < 1 + share for ratio in ratios) / trials
        above = sum((ratio.lo or 0.0) > 1 + share for ratio in ratios) / trials
        outcomes = [one.outcome for one in found]
        shares = [1 - below - above, below, above, *(outcomes.count(name) / trials for name in ("regressed", "ok"))]
        pairs = statistics.median(one.pairs for one in found)
        print(f"| {share:.0%} | {period} | {' | '.join(f'{x:.0%}' for x in shares)} | {pairs:g} |")


ESTIMATORS = {
    "median of neighbours": neighbour_ratio,
    "mean of neighbours": lambda a, b: statistics.fmean(math.log(y / x) for x, y in zip(a, b, strict=True)),
    "ratio of medians": lambda a, b: math.log(statistics.median(b) / statistics.median(a)),
    "ratio of means": lambda a, b: math.log(statistics.fmean(b) / statistics.fmean(a)),
}


def spread(recorded: list[dict[str, Any]]) -> None:
    """The error of each estimator for each length of turns, as what a second of turns would leave of it."""
    print("| beside | steps of a turn | turns | " + " | ".join(ESTIMATORS) + " | calm alone | ratio of busy ones |")
    print("|---|---|---|" + "---|" * (len(ESTIMATORS) + 2))
    for neighbours, length in itertools.product(sorted({one["neighbours"] for one in recorded}), LENGTHS):
        errors: dict[str, list[float]] = defaultdict(list)
        turns, busy = 0, []
        for one in recorded:
            if one["neighbours"] != neighbours:
                continue
            for same, group in itertools.groupby(one["rotations"], key=lambda rotation: rotation["length"]):
                stretch = list(group)
                if same != length or len(stretch) < 2:
                    continue
                turns += len(stretch)
                seconds = sum(rotation["seconds"] for rotation in stretch)
                sides = [[statistics.fmean(x[0] for x in r["turns"][side][1:]) for r in stretch] for side in (0, 1)]
                for name, estimate in ESTIMATORS.items():
                    errors[name].append(estimate(*sides) ** 2 * seconds)
                calm = [place for place, rotation in enumerate(stretch) if not rotation["busy"]]
                busy.append(1 - len(calm) / len(stretch))
                if calm:
                    of_calm = neighbour_ratio(*([side[place] for place in calm] for side in sides))
                    errors["calm"].append(of_calm**2 * seconds)
        cells = [f"{math.sqrt(statistics.fmean(errors[name])):.1%}" for name in ESTIMATORS]
        alone = f"{math.sqrt(statistics.fmean(errors['calm'])):.1%}" if errors["calm"] else "-"
        print(f"| {neighbours} | {length} | {turns} | {' | '.join(cells)} | {alone} | {statistics.fmean(busy):.0%} |")


def replay(file: Path, trials: int) -> None:
    recorded = [json.loads(line) for line in file.read_text().splitlines()]
    spread(recorded)
    for neighbours in sorted({one["neighbours"] for one in recorded}):
        pool = []
        for one in recorded:
            if one["neighbours"] == neighbours:
                short = [rotation["turns"] for rotation in one["rotations"] if rotation["length"] == LENGTHS[0]]
                pool.append(tuple([[Sample(*x) for x in turns[side][1:]] for turns in short] for side in (0, 1)))
        print(f"\nbeside {neighbours}")
        coverage(pool, trials)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("record", "replay"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--pairs", type=int, default=10, help="to record (default: %(default)s)")
    parser.add_argument("--neighbours", type=int, nargs="+", default=[0, 1, 2], help="busy processes beside a pair")
    parser.add_argument("--trials", type=int, default=100, help="of each planted stall (default: %(default)s)")
    arguments = parser.parse_args()
    if arguments.do == "record":
        record(arguments.file, arguments.pairs, arguments.neighbours)
    else:
        replay(arguments.file, arguments.trials)


if __name__ == "__main__":
    main()
