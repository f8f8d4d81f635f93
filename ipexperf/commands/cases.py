"""`ipexperf cases`: list the cases that would run, and with --why those that would not."""

from __future__ import annotations

import argparse

from ipexperf.commands import console, planning
from ipexperf.plan import options as table


def add_cases(subparsers: console.Subparsers) -> None:
    parser = console.declare(subparsers, "cases", "list the cases that would run")
    parser.add_argument("--why", action="store_true", help="list the cells left out too, by their reasons")
    planning.add_options(parser, (table.PLAN, table.MEASURE, table.RUN))
    parser.set_defaults(run=run_cases)


def run_cases(arguments: argparse.Namespace) -> int:
    from ipexperf import run
    from ipexperf.bench import registry
    from ipexperf.plan import sizes
    from ipexperf.report.units import plural

    plan = run.plan(planning.resolve(arguments))
    for case in plan.cases:
        size = sizes.text(registry.models.get(case.model), case.size)
        console.say(f"{case.id}  batch {case.batch}, {size}, {case.data}")
    if arguments.why:
        cells: dict[str, list[str]] = {}
        for left in plan.left_out:
            cells.setdefault(left.reason, []).append(left.id)
        for reason, names in cells.items():
            console.say(f"left out: {reason}")
            for name in names:
                console.say(f"    {name}")
    measured = f"{plural(len(plan.cases), 'case')} of {plural(plan.launches, 'launch', 'launches')}"
    console.say(f"{measured}, {plural(len(plan.left_out), 'cell')} left out")
    return 0


TOPIC = console.PLAN
COMMANDS = (add_cases,)
