"""The `ipexperf` command. Each subcommand is an `add_<name>` that declares it and a few lines that call a room."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias

from ipexperf import __version__
from ipexperf.case import AXES
from ipexperf.errors import IpexperfError
from ipexperf.result import METRICS, PRIMARY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ipexperf.history.store import History

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - the type has no public name

USAGE_ERROR = 2
INTERRUPTED = 130
UNBOUNDED = 500
"""The width of tables that go into a file or a pipe, where nothing has to fit."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit status: 0, or 2 for what cannot be done, with one sentence why."""
    arguments = _parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except IpexperfError as error:
        print(f"ipexperf: {error}", file=sys.stderr)
        return USAGE_ERROR
    except BrokenPipeError:
        # The reader, `head` say, has seen enough. Python would complain once more when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ipexperf", description="Look into the history of performance runs.")
    parser.add_argument("--version", action="version", version=f"ipexperf {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    add_runs(subparsers)
    add_show(subparsers)
    add_trend(subparsers)
    add_cases(subparsers)
    add_baseline(subparsers)
    add_ab(subparsers)
    return parser


def add_cases(subparsers: Subparsers) -> None:
    from ipexperf.commands import cases, planning

    parser = subparsers.add_parser("cases", help="list the cases that would run", description="List the cases.")
    parser.add_argument("--why", action="store_true", help="list the cells left out too, each with its reason")
    planning.add_options(parser)
    parser.set_defaults(run=cases.run_cases)


def add_baseline(subparsers: Subparsers) -> None:
    from ipexperf.commands import baseline

    purpose = "accept, list, compare and show what runs are judged against"
    parser = subparsers.add_parser("baseline", help=purpose, description=purpose[0].upper() + purpose[1:] + ".")
    for made in baseline.add_baseline(parser):
        _add_history(made)


def add_ab(subparsers: Subparsers) -> None:
    from ipexperf.commands import ab

    purpose = "let two live workers take turns, and compare them"
    parser = subparsers.add_parser("ab", help=purpose, description=purpose[0].upper() + purpose[1:] + ".")
    ab.add_ab(parser)
    parser.set_defaults(run=ab.run_ab)


def add_runs(subparsers: Subparsers) -> None:
    parser = _history_parser(subparsers, "runs", "list the newest runs")
    parser.add_argument("--limit", type=_positive, default=20, metavar="N", help="how many (default: %(default)s)")
    parser.set_defaults(run=run_runs)


def run_runs(arguments: argparse.Namespace) -> int:
    with _history(arguments) as history:
        found = history.runs(arguments.limit)
    if arguments.json:
        return _print_json([asdict(run) for run in found])
    from ipexperf.history.tables import runs_table

    _console().print(runs_table(found) if found else "No runs yet.")
    return 0


def add_show(subparsers: Subparsers) -> None:
    parser = _history_parser(subparsers, "show", "show every case of one run")
    parser.add_argument("selector", metavar="RUN", help="uid or its beginning, last, last~3, YYYY-MM-DD, or a commit")
    parser.set_defaults(run=run_show)


def run_show(arguments: argparse.Namespace) -> int:
    with _history(arguments) as history:
        detail = history.show(arguments.selector)
    if arguments.json:
        return _print_json(asdict(detail))
    from ipexperf.history.tables import cases_table, failures_text, run_text

    console = _console()
    console.print(run_text(detail))
    console.print(cases_table(detail.cases) if detail.cases else "No cases were recorded.")
    if failures := failures_text(detail.cases):
        console.print(failures)
    return 0


def add_trend(subparsers: Subparsers) -> None:
    parser = _history_parser(subparsers, "trend", "follow one metric through time")
    parser.add_argument("--metric", choices=tuple(METRICS), default=PRIMARY, help="default: %(default)s")
    for axis in AXES:
        parser.add_argument(f"--{axis}", help=f"only this {axis}")
    parser.add_argument("--machine", metavar="KEY", help="only this machine_key")
    parser.add_argument("--branch", help="only this branch")
    parser.add_argument("--since", metavar="DATE", help="only runs from this UTC date or moment on")
    newest = "the newest N runs of each series (default: %(default)s)"
    parser.add_argument("--limit", type=_positive, default=30, metavar="N", help=newest)
    parser.set_defaults(run=run_trend)


def run_trend(arguments: argparse.Namespace) -> int:
    names = (*AXES, "machine", "branch", "since", "limit")
    filters: dict[str, Any] = {name: getattr(arguments, name) for name in names}
    with _history(arguments) as history:
        points = history.trend(arguments.metric, **filters)
    if arguments.json:
        return _print_json([asdict(point) for point in points])
    from ipexperf.history.tables import trend_table

    _console().print(trend_table(points) if points else f"No {arguments.metric} matches.")
    return 0


def _history_parser(subparsers: Subparsers, name: str, purpose: str) -> argparse.ArgumentParser:
    """Declare a subcommand that reads a history."""
    parser = subparsers.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
    _add_history(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser


def _add_history(parser: argparse.ArgumentParser) -> None:
    default = os.environ.get("IPEXPERF_DB") or "ipexperf.db"
    text = "history file or SQLAlchemy URL (default: $IPEXPERF_DB or ipexperf.db)"
    parser.add_argument("--db", default=default, metavar="FILE", help=text)


def _history(arguments: argparse.Namespace) -> History:
    from ipexperf.history.store import History

    return History.open(arguments.db, create=False)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


def _print_json(document: object) -> int:
    json.dump(document, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")
    return 0


def _console() -> Console:
    from rich.console import Console

    class PlainConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with an error; `main` ends quietly

    return PlainConsole(width=None if sys.stdout.isatty() else UNBOUNDED, highlight=False, soft_wrap=False)


if __name__ == "__main__":
    sys.exit(main())
