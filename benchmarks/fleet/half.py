"""One of the two processes of overhead.py: a worker of ipexperf, which steps when a line on stdin asks for it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from ipexperf import run
from ipexperf.commands import planning
from ipexperf.conduct.conductor import Conductor


def say(**words: object) -> None:
    print(json.dumps(words), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, required=True, help="samples of a turn")
    planning.add_options(parser)
    arguments = parser.parse_args()
    options = planning.resolve(arguments)
    (case,) = run.plan(options).cases
    conditions = Conductor(options, Path.cwd(), lambda text: print(text, file=sys.stderr)).ready(case)
    with conditions.worker() as worker:
        worker.prepare(case.to_json(), dataclasses.asdict(conditions.settings))
        block = int(worker.ask("warm")["block"])
        say(ready=case.id)
        for _ in sys.stdin:
            reply = worker.ask("sample", count=arguments.samples, block=block)
            say(seconds=sum(wall for wall, _, _ in reply["samples"]) / arguments.samples)


if __name__ == "__main__":
    main()
