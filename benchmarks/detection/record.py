"""Record launches of identical code, measured by our rule and by those of others, for `replay.py`.

For each case, a round measures a pair of fresh processes that take turns, and then two fresh processes one after the
other. All run the same code, so anything that a rule finds is a false alarm. Each line of the file is a process: its
case, how it was measured, the number of its pair, its start, and the seconds of its turns or steps. Lines are appended
to an existing file.

    python benchmarks/detection/record.py --for 2400 --model resnet18 --mode infer_jit --stack ipex recorded.csv
"""

import argparse
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from ipexperf import run
from ipexperf.commands import planning
from ipexperf.compare import together
from ipexperf.compare.arm import Arm, arm
from ipexperf.compare.round import Effort
from ipexperf.conduct.conductor import Conductor
from ipexperf.conduct.launch import to_samples
from ipexperf.plan.arms import ArmSpec

TURNS = 30
"""Turns of each worker in a pair."""
ITERATIONS = 20
"""Samples of a process that is measured alone."""


def line(case: str, how: str, number: int, began: float, seconds: Sequence[float]) -> str:
    """Format a process as a line, with times to the microsecond."""
    told = " ".join(f"{value:.6f}" for value in seconds)
    return f"{case},{how},{number},{began:.1f},{told}\n"


def pair(one: Arm, number: int, began: float, chance: random.Random) -> list[str]:
    """Measure two processes of the same code that take turns."""
    plain = replace(one, prove=False)
    played = together.play([plain, plain], Effort(turns=TURNS, most=TURNS), chance, lambda _: None)
    sides = zip("ab", played.results, strict=True)
    return [line(one.case.id, f"turns {name}", number, began, side.times[0]) for name, side in sides]


def apart(one: Arm, number: int, began: float) -> str:
    """Measure a process alone."""
    with one.conditions.worker() as worker:
        worker.prepare(one.case.to_json(), asdict(one.conditions.settings))
        worker.ask("warm")
        samples = to_samples(worker.ask("sample", count=ITERATIONS)["samples"])
    return line(one.case.id, "apart", number, began, [sample.wall for sample in samples])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the file that lines are added to")
    parser.add_argument("--for", dest="seconds", type=float, default=2400.0, help="seconds (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="of the random start order")
    planning.add_options(parser)
    told = parser.parse_args()
    chance = random.Random(told.seed)  # noqa: S311 - a start order, no secret
    begin = time.monotonic()
    options = planning.resolve(told)
    plan = run.plan(options)
    conductor = Conductor(options, Path.cwd(), lambda text: print(f"  {text}", file=sys.stderr))
    arms = [arm(conductor, case, ArmSpec()) for case in plan.cases]
    known = told.file.read_text().splitlines() if told.file.exists() else []
    number = 1 + max((int(text.split(",")[2]) for text in known), default=-1)
    longest = 0.0
    while time.monotonic() - begin + longest < told.seconds:
        started = time.monotonic()
        for one in arms:
            with told.file.open("a") as file:
                file.writelines(pair(one, number, time.time(), chance))
                for _ in range(2):
                    file.write(apart(one, number, time.time()))
        longest = max(longest, time.monotonic() - started)
        print(f"round {number}: {time.monotonic() - begin:.0f} of {told.seconds:.0f} s", file=sys.stderr)
        number += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
