"""Record what equal processes tell of memory and of their starts, for `replay.py`.

For each case, a round measures two fresh processes of the same code that take turns, whose builds are repeated in
forked workers, as for a judged `compile_time`. With `--forked` it then measures two that are forked from the same
server. Each line of the file is a metric of a process: its case, `fresh` or `forked`, the number of its pair, its side,
the metric, its value. Lines are appended to an existing file.

    python benchmarks/gates/record.py --rounds 20 --model resnet18 --mode infer_jit --stack ipex recorded.csv
"""

import argparse
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ipexperf import run
from ipexperf.commands import planning
from ipexperf.compare import together
from ipexperf.compare.arm import Arm, arm
from ipexperf.compare.round import Effort
from ipexperf.conduct.conductor import Conductor
from ipexperf.plan.arms import ArmSpec
from ipexperf.result import METRICS


def lines(how: str, number: int, both: tuple[Arm, Arm], chance: random.Random) -> Iterator[str]:
    """Measure two processes of the same code, and format what they tell."""
    played = together.play(both, Effort(), chance, lambda _: None)
    for name, side in zip("ab", played.results, strict=True):
        for metric in METRICS:
            if metric in side.launch.metrics:
                value = side.launch.metrics[metric]
                yield f"{side.arm.case.id},{how},{number},{name},{metric},{value:.9g}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--forked", action="store_true", help="also measure pairs of forked processes")
    planning.add_options(parser)
    arguments = parser.parse_args()
    options = planning.resolve(arguments)
    chance = random.Random()  # noqa: S311 - a start order, no secret
    conductor = Conductor(options, Path.cwd(), lambda _: None)
    try:
        arms = [arm(conductor, case, ArmSpec(), case.id) for case in run.plan(options).cases]
        plain = [replace(one, prove=False, accuracy=False) for one in arms]
        there = arguments.file.read_text().splitlines() if arguments.file.exists() else []
        first = 1 + max((int(line.split(",")[2]) for line in there), default=-1)
        with arguments.file.open("a", encoding="utf-8") as stream:
            for number in range(first, first + arguments.rounds):
                for one in plain:
                    with conductor.forking([(one.case, one.conditions)] * 2, 4) as forking:
                        forked = forking.forked(one.case, one.conditions)
                        fresh = replace(one, builds=forked)
                        stream.writelines(lines("fresh", number, (fresh, fresh), chance))
                        if arguments.forked and forked is not None:
                            both = replace(one, conditions=forked)
                            stream.writelines(lines("forked", number, (both, both), chance))
                    stream.flush()
                sys.stderr.write(f"round {number}\n")
    finally:
        conductor.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
