"""The `ipexperf` command. Each subcommand is declared by an `add_<name>` in `commands`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ipexperf import __version__
from ipexperf.commands import compare, console, export, gate, report, runs, trend, upkeep
from ipexperf.commands.console import Subparsers
from ipexperf.conduct import interrupts
from ipexperf.errors import IpexperfError

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE_ERROR = 2
INTERRUPTED = 130
ASKING = (
    runs.add_runs,
    runs.add_show,
    compare.add_compare,
    compare.add_speedup,
    trend.add_trend,
    trend.add_changes,
    report.add_report,
    gate.add_gate,
    export.add_export,
    upkeep.add_merge,
    upkeep.add_prune,
    upkeep.add_db,
)
"""The subcommands that read a history, in the order of `--help`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand and return its exit status. An error is one sentence and status 2."""
    words = list(sys.argv[1:] if argv is None else argv)
    return gate.guarded(words, _answer) if gate.named(words) else _answer(words)


def _answer(words: Sequence[str]) -> int:
    arguments = _parser().parse_args(words)
    try:
        with interrupts.sigterm_as_interrupt():
            status: int = arguments.run(arguments)
            sys.stdout.flush()
    except IpexperfError as error:
        console.complain(str(error))
        return USAGE_ERROR
    except BrokenPipeError:
        console.silence(sys.stdout)  # the reader, such as `head`, has closed the pipe
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ipexperf", description="Measure, compare and query performance runs.")
    parser.add_argument("--version", action="version", version=f"ipexperf {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for add in ASKING:
        add(subparsers)
    add_cases(subparsers)
    add_models(subparsers)
    add_baseline(subparsers)
    add_ab(subparsers)
    add_prepare(subparsers)
    add_why(subparsers)
    add_selftest(subparsers)
    add_doctor(subparsers)
    add_yardstick(subparsers)
    return parser


def add_cases(subparsers: Subparsers) -> None:
    from ipexperf.commands import cases, planning

    parser = subparsers.add_parser("cases", help="list the cases that would run", description="List the cases.")
    parser.add_argument("--why", action="store_true", help="list the cells left out too, each with its reason")
    planning.add_options(parser)
    parser.set_defaults(run=cases.run_cases)


def add_models(subparsers: Subparsers) -> None:
    from ipexperf.commands import models

    purpose = "list the models with their tasks, data and sizes"
    parser = console.declare(subparsers, "models", purpose)
    models.add_models(parser)
    parser.set_defaults(run=models.run_models)


def add_baseline(subparsers: Subparsers) -> None:
    from ipexperf.commands import baseline

    purpose = "accept, list, compare and show baselines"
    parser = console.declare(subparsers, "baseline", purpose)
    for made in baseline.add_baseline(parser):
        console.add_history(made)


def add_ab(subparsers: Subparsers) -> None:
    from ipexperf.commands import ab

    purpose = "compare two arms in live workers that take turns"
    parser = console.declare(subparsers, "ab", purpose)
    ab.add_ab(parser)
    parser.set_defaults(run=ab.run_ab)


def add_prepare(subparsers: Subparsers) -> None:
    from ipexperf.commands import planning, prepare

    purpose = "make the weights and quantised networks of cases in advance"
    parser = console.declare(subparsers, "prepare", purpose)
    planning.add_options(parser)
    parser.set_defaults(run=prepare.run_prepare)


def add_why(subparsers: Subparsers) -> None:
    from ipexperf.commands import why

    purpose = "show what a case ran differently from before"
    parser = console.declare(subparsers, "why", purpose)
    why.add_why(parser)
    console.add_history(parser)
    parser.set_defaults(run=why.run_why)


def add_selftest(subparsers: Subparsers) -> None:
    from ipexperf.commands import selftest

    purpose = "test the judge on this machine: false alarms, and slowdowns found"
    parser = console.declare(subparsers, "selftest", purpose)
    selftest.add_selftest(parser)
    parser.set_defaults(run=selftest.run_selftest)


def add_doctor(subparsers: Subparsers) -> None:
    from ipexperf.commands import doctor

    purpose = "check this machine for measuring, and find the smallest slowdown it can show"
    parser = console.declare(subparsers, "doctor", purpose)
    doctor.add_doctor(parser)
    parser.set_defaults(run=doctor.run_doctor)


def add_yardstick(subparsers: Subparsers) -> None:
    from ipexperf.commands import yardstick

    purpose = "make or show the pinned environment of the yardstick"
    parser = console.declare(subparsers, "yardstick", purpose)
    yardstick.add_yardstick(parser)


if __name__ == "__main__":
    sys.exit(main())
