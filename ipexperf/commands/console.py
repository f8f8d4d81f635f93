"""Shared by the subcommands that read a history: options, opening it, and output formats."""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from ipexperf import variables
from ipexperf.case import AXES, OF_NETWORKS
from ipexperf.errors import UsageError
from ipexperf.plan.values import words
from ipexperf.report.lines import broken
from ipexperf.result import METRICS

if TYPE_CHECKING:
    from rich.console import Console

    from ipexperf.history.drawing import Columns
    from ipexperf.history.records import Recorded
    from ipexperf.history.store import History

CASES = (*AXES, "test")
"""The filters that choose cases."""
Part: TypeAlias = "str | Columns"
"""A table, or lines for people."""
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - the type has no public name

Command: TypeAlias = Callable[[argparse.Namespace], int]
"""What a subcommand does. It returns the exit status."""

PLAN, COMPARE, JUDGE = "before a run", "measure and compare", "accept and judge"
HISTORY, HOSTS, OTHERS = "look at what was measured", "many hosts", "of other packages"
TOPICS = (PLAN, COMPARE, JUDGE, HISTORY, HOSTS, OTHERS)
"""What commands are for, in the order of the help."""

RUN = "last, last~3, YYYY-MM-DD, a branch, or the beginning of a uid or a commit"
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of what a spreadsheet runs as a formula."""
UNWRITTEN = "the answer cannot be written to standard output"


def declare(
    subparsers: Subparsers, name: str, purpose: str, run: Command | None = None, topic: str = "", example: str = ""
) -> argparse.ArgumentParser:
    """Declare a subcommand: its purpose in its own help and in the list of its topic, and the function that works."""
    description, epilog = f"{purpose[0].upper()}{purpose[1:]}.", f"example: ipexperf {example}" if example else None
    parser = subparsers.add_parser(name, help=purpose, description=description, epilog=epilog)
    parser.set_defaults(run=run, topic=topic)
    return parser


def declare_question(
    subparsers: Subparsers, name: str, purpose: str, run: Command, example: str
) -> argparse.ArgumentParser:
    """Declare a subcommand that reads a history and prints a table, JSON or CSV."""
    parser = declare(subparsers, name, purpose, run, HISTORY, example)
    add_history(parser)
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="print JSON instead of a table")
    forms.add_argument("--csv", action="store_true", help="print CSV instead of a table")
    return parser


def add_history(parser: argparse.ArgumentParser) -> None:
    _add_place(parser, "db", "ipexperf.db", "history file or SQLAlchemy URL", read=str, metavar="FILE")


def add_baselines(parser: argparse.ArgumentParser, text: str) -> None:
    _add_place(parser, "baselines", "baselines", text)


def add_cache(parser: argparse.ArgumentParser, text: str = "") -> None:
    """Declare the option for the folder of weights, wheels and environments."""
    _add_place(parser, "cache", ".ipexperf", f"{text}as --perf-cache")


def _add_place(
    parser: argparse.ArgumentParser,
    name: str,
    usual: str,
    text: str,
    *,
    read: Callable[[str], Any] = Path,
    metavar: str = "DIR",
) -> None:
    """Declare the option for a file or folder, with the same default as in a run."""
    variable = f"{variables.PREFIX}{name.upper()}"
    text = f"{text} (default: ${variable} or {usual})"
    default = os.environ.get(variable) or usual
    parser.add_argument(f"--{name}", type=read, default=default, metavar=metavar, help=text)


def add_metric(parser: argparse.ArgumentParser, text: str, **settings: Any) -> None:
    """Declare the option for a metric. The list of all would be longer than the rest of the help."""
    text = f"{text}; `ipexperf help metrics` lists all"
    parser.add_argument("--metric", choices=tuple(METRICS), metavar="NAME", help=text, **settings)


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Declare filters and the range of time. Each axis takes a comma-separated list."""
    for axis in AXES:
        parser.add_argument(f"--{axis}", type=words, help=f"only this {axis}, or these: A,B")
    parser.add_argument("--test", action="append", help="only the function of this test (repeatable)")
    parser.add_argument("--machine", type=words, metavar="KEY", help="only this machine_key")
    parser.add_argument("--branch", type=words, help="only this branch")
    parser.add_argument("--since", metavar="WHEN", help="only runs from this UTC date, moment or run on")
    parser.add_argument("--until", metavar="WHEN", help="only runs up to this UTC date, moment or run")


def filters(arguments: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in (*CASES, "machine", "branch", "since", "until")}


def unknown_filter(arguments: argparse.Namespace, history: History) -> str:
    """The first filter value that no case of the history has, with a suggestion, or an empty text."""
    from ipexperf.bench.registry import unknown

    named = ((axis, name) for axis in CASES for name in getattr(arguments, axis) or ())
    absent = (unknown(axis, name, known) for axis, name in named if name not in (known := history.values(axis)))
    return next(absent, "")


def open_history(arguments: argparse.Namespace) -> History:
    from ipexperf.history.store import History

    return History.open(arguments.db, create=False)


def chosen(cases: Sequence[Recorded], names: Sequence[str] | None, run: str) -> list[Recorded]:
    """The cases of a run with these ids, or all. Raise UsageError for an id that the run does not have."""
    from ipexperf.bench.registry import unknown

    known = {recorded.case.name for recorded in cases}
    for name in names or ():
        if name not in known | {recorded.case.id for recorded in cases}:
            raise UsageError(f"run {run}: {unknown('case', name, sorted(known))}")
    return [recorded for recorded in cases if not names or {recorded.case.id, recorded.case.name} & set(names)]


def output(
    arguments: argparse.Namespace,
    document: object,
    rows: Sequence[Mapping[str, Any]],
    drawn: Callable[[], Iterable[Part]],
) -> int:
    """Print an answer in the requested format: JSON, CSV, or the tables and lines for people."""
    if arguments.json:
        say_json(document)
    elif arguments.csv:
        write_csv(rows)
    else:
        draw(drawn())
    return 0


def draw(parts: Iterable[Part]) -> None:
    """Print tables and lines."""
    from ipexperf.history.drawing import Columns

    console = make_console()
    narrow: dict[str, None] = {}
    for part in parts:
        if isinstance(part, Columns):
            table, without = part.fitted(console.width)
            narrow.update(dict.fromkeys(without))
            console.print(table)
            continue
        for line in part.splitlines():
            hang = " " * (len(line) - len(line.lstrip()) + 4)
            say("\n".join(broken(line, console.width, others=hang)))
    if narrow:
        console.print(f"More columns in a wider terminal, or with --json or --csv: {', '.join(narrow)}.")


def write_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV to standard output, with a header. Missing values are empty."""
    if rows:
        lacking = {name for name in OF_NETWORKS if all(row.get(name) is None for row in rows)}
        names = [name for name in rows[0] if name not in lacking]
        writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(row[name]) for name in names} for row in rows)


def _cell(value: Any) -> Any:
    if isinstance(value, Mapping):
        return json.dumps(value)
    return plain_cell("; ".join(map(str, value)) if isinstance(value, list | tuple) else value)


def plain_cell(value: Any) -> Any:
    """A value of a CSV file. A text that a spreadsheet would run as a formula begins with an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def say_json(document: object) -> None:
    json.dump(document, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def complain(text: str) -> None:
    """Write an error message of one sentence to standard error."""
    with suppress(OSError):  # standard error is full or closed: only the exit status is left
        print(f"ipexperf: {text}", file=sys.stderr)


@contextmanager
def answering() -> Iterator[None]:
    """Raise UsageError if standard output cannot be written to, or if a file that the user named cannot be used."""
    if sys.stdout is None:
        raise UsageError(f"{UNWRITTEN}: it is closed; redirect to /dev/null instead")
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:  # a stream that was open
            # What could not be written is still in the buffer, if there is one.
            ours = getattr(sys.stdout, "write_through", False) or not flush(sys.stdout)
            whose = UNWRITTEN if ours else "a file cannot be written"
            silence(sys.stdout)
            raise UsageError(f"{whose}: {error.strerror or error}") from error
        raise UsageError(f"{str(error.filename)!r}: {error.strerror}") from error


def flush(stream: TextIO | None) -> bool:
    """Flush a stream. If that fails, silence the stream and return False."""
    if stream is None:
        return True
    try:
        stream.flush()
    except OSError:
        silence(stream)
        return False
    return True


def silence(stream: TextIO) -> None:
    """Redirect a stream to /dev/null. Otherwise Python's final flush would fail and set the exit status 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def make_console() -> Console:
    from rich.console import Console

    from ipexperf.history.drawing import UNBOUNDED

    class PlainConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would exit with an error; let `main` end quietly

    return PlainConsole(width=None if sys.stdout.isatty() else UNBOUNDED, highlight=False, soft_wrap=False)
