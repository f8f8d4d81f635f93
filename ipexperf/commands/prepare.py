"""`ipexperf prepare`: make the weights and quantised networks of the chosen cases in advance."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.commands import console, planning, progress
from ipexperf.errors import WorkerError

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.conduct.conductor import Conductor

FAILED = 1
"""Exit status if something could not be made. Everything else is."""


def add_prepare(subparsers: console.Subparsers) -> None:
    purpose = "make the weights and quantised networks of cases in advance"
    parser = console.declare(subparsers, "prepare", purpose)
    planning.add_options(parser)
    parser.set_defaults(run=run_prepare)


def run_prepare(arguments: argparse.Namespace) -> int:
    """Prepare the plan case by case. Files that cases share are made once."""
    from ipexperf import run
    from ipexperf.conduct.conductor import Conductor
    from ipexperf.report.units import plural

    options = planning.resolve(arguments)
    plan = run.plan(options)
    failed = 0
    with contextlib.closing(Conductor(options, Path.cwd(), progress.say)) as conductor:
        for number, case in enumerate(plan.cases, 1):
            progress.say(f"case {number} of {len(plan.cases)}: {case.id}")
            failed += not _ready(conductor, case)
    count = sum(conductor.made.values())
    text = f"{count} made, {len(conductor.made) - count} there already, for {plural(len(plan.cases), 'case')}"
    console.say(f"{text}{f'; {failed} could not be made' if failed else ''}")
    return FAILED if failed else 0


def _ready(conductor: Conductor, case: Case) -> bool:
    """Make what a case loads, and print each new file. Returns whether all is there."""
    before = set(conductor.made)
    try:
        conductor.ready(case)
    except WorkerError as error:
        console.say(f"failed         {case.id}: {error.reason}")
        return False
    finally:
        for path, new in conductor.made.items():
            if path not in before:
                console.say(f"{'made' if new else 'there already':<13}  {path.parent.name}/{path.name}")
        sys.stdout.flush()
    return True


TOPIC = console.PLAN
COMMANDS = (add_prepare,)
