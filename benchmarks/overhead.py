"""The throughput that ipexperf's measuring costs, compared with a bare script with a tight loop.

Two processes take turns: a worker, and bare.py with the same model, batch, dtype, mode and stack; for decoders it is
bare_decoder.py, with transformers' own class. Each turn is divided by the neighbouring turn of the other. The median of
a pair of processes is one replicate, and the interval is over fresh pairs.

Two processes always differ by their memory layout. So the worker also runs the same steps as one block without pauses;
the difference from that is the cost of sampling.
"""

import argparse
import contextlib
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ipexperf import run
from ipexperf.case import NetworkCase
from ipexperf.commands import planning
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.process import quiet
from ipexperf.judge import ratios

NETWORK, DECODER = (Path(__file__).with_name(name) for name in ("bare.py", "bare_decoder.py"))
SCRIPTS = {"train": NETWORK, "infer": NETWORK, "infer_jit": NETWORK, "prefill": DECODER, "decode": DECODER}
"""The bare script for each mode that has one."""


class Bare:
    """A process that runs a bare script."""

    def __init__(self, case: NetworkCase, conditions: Conditions, log: Any) -> None:
        threads = conditions.settings.threads or len(os.sched_getaffinity(0))
        command = [conditions.python or sys.executable, str(SCRIPTS[case.mode]), "--threads", str(threads)]
        for name in ("model", "device", "dtype", "mode", "stack", "batch", "size"):
            command += [f"--{name}", str(getattr(case, name))]
        if conditions.settings.weights:
            command += ["--weights", conditions.settings.weights]
        self._log = log
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            # The same variables as in our workers: idle threads must not use the core of the other process.
            env={**quiet(os.environ), **os.environ},
        )
        self._line()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            last = self._log.read().decode(errors="replace").strip().splitlines()[-1:]
            sys.exit(f"the bare script ended: {last[0] if last else 'it said nothing'}")
        return line

    def go(self, steps: int) -> float:
        """Return the seconds of this many steps in one loop."""
        assert self._process.stdin is not None
        print(f"go {steps}", file=self._process.stdin, flush=True)
        return float(self._line())

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def bare(case: NetworkCase, conditions: Conditions) -> Iterator[Bare]:
    """Yield a bare process that never outlives the block."""
    with tempfile.TemporaryFile() as log:
        process = Bare(case, conditions, log)
        try:
            yield process
        finally:
            process.kill()


@dataclass(frozen=True)
class Times:
    """Seconds of each turn: of the bare loop, of our samples as reported, and as the controller waited for them.

    `unpaused` are those of the worker's steps as one block.
    """

    bare: list[float]
    reported: list[float]
    waited: list[float]
    unpaused: list[float]


def pair(case: NetworkCase, conditions: Conditions, turns: int, samples: int, chance: random.Random) -> Times:
    """Run one pair of fresh processes in turns: A B, B A, A B ..."""
    times = Times([], [], [], [])
    with contextlib.ExitStack() as stack:
        ours_first = chance.random() < 0.5
        other = None if ours_first else stack.enter_context(bare(case, conditions))
        worker = stack.enter_context(conditions.worker())
        worker.prepare(case.to_json(), asdict(conditions.settings))
        if other is None:
            other = stack.enter_context(bare(case, conditions))
        told = worker.ask("warm")
        block = int(told["block"])
        other.go(max(int(told["steps"]), samples * block))

        def ours() -> None:
            begin = time.perf_counter()
            reply = worker.ask("sample", count=samples, block=block)
            times.waited.append(time.perf_counter() - begin)
            times.reported.append(sum(wall for wall, _, _ in reply["samples"]) * block)

        def theirs() -> None:
            times.bare.append(other.go(samples * block))

        def unpaused() -> None:
            reply = worker.ask("sample", count=1, block=samples * block)
            times.unpaused.append(sum(wall for wall, _, _ in reply["samples"]) * samples * block)

        for turn in range(turns):
            # Ours in the middle, next to both others.
            for step in (unpaused, ours, theirs) if turn % 2 else (theirs, ours, unpaused):
                step()
            if turn % 10 == 9:
                print(f"    turn {turn + 1} of {turns}", file=sys.stderr)
    return times


def interval(logs: list[float]) -> str:
    """Format a ratio with its interval, and every replicate."""
    found = ratios.combine(logs)
    each = " ".join(f"{math.exp(log):.4f}" for log in logs)
    bounds = "one replicate has no interval"
    if found.lo is not None and found.hi is not None:
        bounds = f"95 % interval {found.lo:.4f} to {found.hi:.4f}, log sd {statistics.stdev(logs):.4f}"
    return f"{found.value:.4f}, {bounds}, median {math.exp(statistics.median(logs)):.4f}\n            each: {each}"


def tell(name: str, logs: list[float]) -> None:
    """Print our throughput relative to that of the bare loop."""
    print(f"  {name:<9} {interval([-log for log in logs])}", flush=True)


def measure(case: NetworkCase, conditions: Conditions, told: argparse.Namespace, chance: random.Random) -> None:
    """Run all pairs of one case."""
    reported, waited, within = [], [], []
    for index in range(told.pairs):
        print(f"  {case.id}: pair {index + 1} of {told.pairs}", file=sys.stderr)
        times = pair(case, conditions, told.turns, told.turn_samples, chance)
        reported.append(ratios.neighbour_ratio(times.bare, times.reported))
        waited.append(ratios.neighbour_ratio(times.bare, times.waited))
        within.append(ratios.neighbour_ratio(times.unpaused, times.reported))
        # At once, so that a run that is cut off has told what it measured.
        both = math.exp(-reported[-1]), math.exp(-within[-1])
        print("    {:.4f} of the bare loop's throughput, {:.4f} of its own".format(*both), file=sys.stderr)
    print(f"{case.id} (batch {case.batch}): throughput of ipexperf over the bare loop's, 1 is no overhead")
    tell("reported", reported)
    tell("waited", waited)
    print("  and over the same worker's own loop of the same steps, without a pause between samples:")
    tell("within", within)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=6, help="pairs of fresh processes (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=30, help="turns of each process (default: %(default)s)")
    parser.add_argument("--turn-samples", type=int, default=4, help="samples a turn (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="of the random start order")
    planning.add_options(parser)
    told = parser.parse_args()
    if min(told.pairs, told.turns, told.turn_samples) < 1:
        parser.error("--pairs, --turns and --turn-samples must be at least 1")
    chance = random.Random(told.seed)  # noqa: S311 - a start order, no secret
    options = planning.resolve(told)
    plan = run.plan(options)
    conductor = Conductor(options, Path.cwd(), lambda text: print(f"  {text}", file=sys.stderr))
    for case in plan.cases:
        if case.mode not in SCRIPTS or case.knobs:
            print(f"{case.id}: left out, no bare script has its mode, or not its knobs")
            continue
        measure(case, conductor.ready(case), told, chance)
    return 0


if __name__ == "__main__":
    sys.exit(main())
