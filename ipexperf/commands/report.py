"""`ipexperf report`: the history as pages for a browser or CSV, or one run as markdown or for other tools."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

from ipexperf.commands import console
from ipexperf.commands.show import summary
from ipexperf.errors import UsageError
from ipexperf.history.values import finite, unpack
from ipexperf.plan.values import positive
from ipexperf.units import plural


def add_report(subparsers: console.Subparsers) -> None:
    purpose = "write the history as pages for a browser or as CSV, or one run as markdown or JSON"
    parser = console.declare(subparsers, "report", purpose, run_report, console.HISTORY, "report --html site")
    console.add_history(parser)
    text = f"of --markdown and the JSON: {console.RUN} (default: last)"
    parser.add_argument("selector", metavar="RUN", nargs="?", help=text)
    forms = parser.add_mutually_exclusive_group(required=True)
    forms.add_argument("--html", type=Path, metavar="DIR", help="write pages there: new, empty, or an older report")
    forms.add_argument("--csv", action="store_true", help="print every point of every run as CSV")
    forms.add_argument("--tables", type=Path, metavar="DIR", help="write all of the history there: a CSV file a table")
    forms.add_argument("--markdown", action="store_true", help="print the run as markdown")
    forms.add_argument("--pytest-benchmark", action="store_true", help="print the run as JSON of pytest-benchmark")
    forms.add_argument(
        "--pytorch", action="store_true", help="print the run as JSON of PyTorch's benchmark database (v3)"
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="of --html: draw the newest N (default: 400)")


def run_report(arguments: argparse.Namespace) -> int:
    if arguments.html is None and arguments.limit is not None:
        raise UsageError("--limit is for --html")
    if arguments.selector is not None and (arguments.csv or arguments.html or arguments.tables):
        others = "--markdown, --pytest-benchmark and --pytorch"
        raise UsageError(f"--html, --csv and --tables have every run: a RUN is for {others}")
    if arguments.csv:
        return _print_points(arguments)
    if arguments.tables is not None:
        return _write_tables(arguments)
    return _print_run(arguments) if arguments.html is None else _write_pages(arguments)


def _write_pages(arguments: argparse.Namespace) -> int:
    from ipexperf.dashboard import folder, writing

    folder.check(arguments.html)
    with console.open_history(arguments) as history:
        written = writing.write(history, arguments.html, arguments.limit or writing.RUNS)
    older = f"; {plural(written.older, 'older run')} not drawn" if written.older else ""
    console.say(f"{written.index}: {plural(written.cases, 'case')} of {plural(written.runs, 'run')}{older}")
    return 0


def _print_points(arguments: argparse.Namespace) -> int:
    from ipexperf.history.frame import trend

    with console.open_history(arguments) as history:
        history.check_begun()
    points = trend(arguments.db, None)
    texts = points.select_dtypes(include=["object", "string", "category"]).columns
    harmless = points.assign(**{name: points[name].map(console.plain_cell, na_action="ignore") for name in texts})
    harmless.to_csv(sys.stdout, index=False, lineterminator="\n")
    return 0


def _write_tables(arguments: argparse.Namespace) -> int:
    from sqlalchemy import select

    from ipexperf.dashboard import folder
    from ipexperf.history import schema

    with console.open_history(arguments) as history, folder.whole(arguments.tables) as new, history.reading() as read:
        for table in schema.metadata.sorted_tables:
            with (new / f"{table.name}.csv").open("w", encoding="utf-8", newline="") as stream:
                writer = csv.writer(stream, lineterminator="\n")
                writer.writerow(table.columns.keys())
                writer.writerows(map(_cell, row) for row in read.execute(select(table)))
    console.say(f"{arguments.tables}: all of the history, a CSV file a table")
    return 0


def _cell(value: Any) -> Any:
    """A value as CSV has it: documents, and the numbers of samples, as JSON."""
    plain = unpack(value) if isinstance(value, bytes) else value
    return json.dumps(finite(plain)) if isinstance(plain, dict | list | tuple) else console.plain_cell(plain)


def _print_run(arguments: argparse.Namespace) -> int:
    from ipexperf.history import exports
    from ipexperf.report import markdown

    with console.open_history(arguments) as history:
        detail = history.show(arguments.selector or "last")
        found = summary(history, detail)
    if arguments.pytest_benchmark or arguments.pytorch:
        console.say_json((exports.pytorch if arguments.pytorch else exports.pytest_benchmark)(detail))
        return 0
    rows = markdown.rows((*found.networks.values(), *found.functions), found.speeds)
    console.say(markdown.text(rows, found.line, detail.run.uid).rstrip())
    return 0


COMMANDS = (add_report,)
