"""`ipexperf export`: the history as CSV, or one run as a file of pytest-benchmark's."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipexperf.commands import console
from ipexperf.errors import UsageError
from ipexperf.result import METRICS

if TYPE_CHECKING:
    import pandas as pd

WHOLE, ONE = "csv", "pytest-benchmark"
"""The format with every run, and that with one."""


def add_export(subparsers: console.Subparsers) -> None:
    purpose = "export the history or one run for other tools"
    parser = console.declare(subparsers, "export", purpose)
    console.add_history(parser)
    parser.add_argument("form", choices=(WHOLE, ONE), help="csv: every point; pytest-benchmark: one run")
    parser.add_argument("selector", metavar="RUN", nargs="?", help=f"{console.RUN} (default: last)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write there instead of to standard output")
    parser.add_argument("--metric", choices=tuple(METRICS), help="csv: only this metric")
    console.add_filters(parser)
    console.add_range(parser)
    parser.set_defaults(run=run_export)


def run_export(arguments: argparse.Namespace) -> int:
    narrowed = [name for name, value in _query(arguments).items() if value is not None]
    if arguments.form == WHOLE and arguments.selector is not None:
        raise UsageError(f"{WHOLE} holds every run: narrow it with --since and --until, not with a RUN")
    if arguments.form == ONE and narrowed:
        raise UsageError(f"{ONE} holds one run as it is: --{narrowed[0]} is for {WHOLE}")
    if arguments.form == ONE:
        _write(arguments, json.dumps(_run(arguments), indent=2, allow_nan=False) + "\n")
    else:
        _write(arguments, _harmless(_points(arguments)).to_csv(index=False, lineterminator="\n"))
    return 0


def _query(arguments: argparse.Namespace) -> dict[str, Any]:
    names = {name: getattr(arguments, name) for name in ("metric", "since", "until")}
    return {**names, **console.filters(arguments)}


def _run(arguments: argparse.Namespace) -> dict[str, Any]:
    from ipexperf.history import exports

    with console.open_history(arguments) as history:
        detail = history.show(arguments.selector or "last")
    return exports.pytest_benchmark(detail)


def _points(arguments: argparse.Namespace) -> pd.DataFrame:
    from ipexperf.history.frame import trend

    with console.open_history(arguments) as history:
        history.check_begun()
    return trend(arguments.db, **_query(arguments))


def _harmless(table: pd.DataFrame) -> pd.DataFrame:
    """The table without texts that a spreadsheet would run as formulas."""
    texts = table.select_dtypes(include=["object", "string", "category"]).columns
    return table.assign(**{name: table[name].map(console.plain_cell, na_action="ignore") for name in texts})


def _write(arguments: argparse.Namespace, text: str) -> None:
    if arguments.output is None:
        sys.stdout.write(text)
        return
    try:
        arguments.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{arguments.output} cannot be written: {error.strerror}") from error


TOPIC = console.HISTORY
COMMANDS = (add_export,)
