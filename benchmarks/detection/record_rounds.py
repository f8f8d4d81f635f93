"""Record rounds as in a run, with a twin of the reference in each group, for `replay_rounds.py`.

A pass makes a few rounds of every group of the plan, the first of fresh processes and the others of forked ones, as in
a run. Each line of the file is a round: its group, how its processes were started, its arms, and the seconds per step
of their turns. Lines are appended to an existing file.

    python benchmarks/detection/record_rounds.py --for 3600 --model resnet18,lprnet --mode infer_jit rounds.jsonl
"""

import argparse
import json
import random
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from ipexperf import run
from ipexperf.bench.process import environment
from ipexperf.commands import planning
from ipexperf.compare.group import GroupRequest, GroupRun
from ipexperf.compare.round import Effort
from ipexperf.conduct.conductor import Conductor
from ipexperf.plan import groups
from ipexperf.plan.options import WITHOUT
from ipexperf.result import RoundRecord

ROUNDS = 4
"""Rounds of each group per pass."""


class Unproven(GroupRun):
    """A group without proof, which a run has shown before, so that the time goes into rounds."""

    def _arm(self, arm):  # type: ignore[no-untyped-def] # as its base has it
        return replace(super()._arm(arm), prove=False, accuracy=False)


def line(record: RoundRecord, cpu: str) -> str:
    """Format a round as a line of JSON, with times to the tenth of a microsecond."""
    document = asdict(record)
    document["seats"] = [
        {
            "case": seat.case.id,
            "role": seat.role,
            "times": [[round(value, 7) for value in part] for part in seat.times],
        }
        for seat in record.seats
    ]
    where = {"cpu": cpu, "at": round(time.time(), 1), "start": "fresh" if record.number == 1 else "fork"}
    return json.dumps({**where, **document}, separators=(",", ":")) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the file that lines are added to")
    parser.add_argument("--for", dest="duration", type=float, default=3600.0, help="seconds (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="of the random orders")
    planning.add_options(parser)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)  # noqa: S311 - a start order, no secret
    begin = time.monotonic()

    def say(text: str) -> None:
        print(f"  {time.monotonic() - begin:.0f} s: {text}", file=sys.stderr, flush=True)

    options = replace(planning.resolve(arguments), without=WITHOUT)
    plan = run.plan(options)
    conductor = Conductor(options, Path.cwd(), lambda _: None)
    cpu = str(environment.hardware().get("cpu"))
    number = 0
    while time.monotonic() - begin < arguments.duration:
        number += 1
        for group in groups.groups(plan.cases):
            effort = Effort()
            request = GroupRequest(group, ROUNDS, twin=True)
            running = Unproven(request, conductor, lambda _: None, effort=effort, chance=chance)
            for _ in running.play():
                """All rounds are written at the end."""
            with arguments.file.open("a") as file:
                file.writelines(line(one, cpu) for one in running.rounds)
            seconds = sum(one.seconds for one in running.rounds)
            say(f"pass {number}: {group.name}: {len(running.rounds)} rounds, {seconds:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
