"""`ipexperf yardstick`: make or show the pinned environment that cases take turns with."""

from __future__ import annotations

import argparse
from pathlib import Path

from ipexperf.commands import console, planning, progress


def add_yardstick(subparsers: console.Subparsers) -> None:
    parser = console.declare(subparsers, "yardstick", "make or show the pinned environment of the yardstick")
    below = parser.add_subparsers(metavar="make|show", required=True)
    subparser = below.add_parser("make", help="make it, replacing an existing one", description="Make the yardstick.")
    purpose = "the packages of it, each with its version (default: the list that comes with ipexperf)"
    subparser.add_argument("--list", type=Path, default=None, metavar="FILE", help=purpose)
    planning.add_lease(subparser)
    subparser.set_defaults(run=run_make)
    other = below.add_parser("show", help="show what it is made of", description="Show the yardstick.")
    other.set_defaults(run=run_show)
    for parser_of in (subparser, other):
        console.add_cache(parser_of)


def run_make(arguments: argparse.Namespace) -> int:
    """Make the environment and print its description, which baselines refer to."""
    from ipexperf.conduct import lease, yardstick

    with lease.for_work(planning.resolve(arguments).lease, progress.say):
        yardstick.make(arguments.cache, arguments.list or yardstick.LIST, progress.say)
    return run_show(arguments)


def run_show(arguments: argparse.Namespace) -> int:
    """Print the description of the environment."""
    from ipexperf.conduct import yardstick

    facts = yardstick.describe(arguments.cache)
    lines = [f"yardstick {facts['content']} in {arguments.cache / yardstick.FOLDER}", f"  Python {facts['python']}"]
    console.say("\n".join([*lines, *(f"  {name}" for name in facts["packages"])]))
    return 0


COMMANDS = (add_yardstick,)
