"""`ipexperf trend` and `ipexperf changes`: series through time, and where their level changed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain

from ipexperf.commands import console
from ipexperf.plan.values import positive
from ipexperf.result import PRIMARY


def add_trend(subparsers: console.Subparsers) -> None:
    parser = console.declare_question(
        subparsers, "trend", "follow one metric through time", run_trend, "trend --model resnet18"
    )
    console.add_metric(parser, "the metric (default: %(default)s)", default=PRIMARY)
    console.add_filters(parser)
    newest = "the newest N runs of each series (default: %(default)s)"
    parser.add_argument("--limit", type=positive, default=30, metavar="N", help=newest)


def run_trend(arguments: argparse.Namespace) -> int:
    from ipexperf.history.points import by_series, rows, shown
    from ipexperf.history.tables import series_tables, work_text

    with console.open_history(arguments) as history:
        history.check_begun()
        points = history.trend(arguments.metric, limit=arguments.limit, **console.filters(arguments))
        every = [*by_series(points)]
        worked = work_text(history, every) if not (arguments.json or arguments.csv) else None
        why = console.unknown_filter(arguments, history) if points.empty else ""

    def drawn() -> Iterator[console.Part]:
        if points.empty:
            yield f"No {arguments.metric} matches: {why or 'leave out a filter'}"
        yield from chain.from_iterable(series_tables(every))
        if worked:
            yield worked

    document = rows(shown(points))
    return console.output(arguments, document, document, drawn)


def add_changes(subparsers: console.Subparsers) -> None:
    purpose = "list regressions and improvements, with the runs around them"
    parser = console.declare_question(subparsers, "changes", purpose, run_changes, "changes --since last~7")
    console.add_metric(parser, f"look at this metric (repeatable; default: {PRIMARY})", action="append")
    console.add_filters(parser)


def run_changes(arguments: argparse.Namespace) -> int:
    from ipexperf.history.changed import changes
    from ipexperf.history.tables import brackets_text, changes_table

    with console.open_history(arguments) as history:
        metrics = list(dict.fromkeys(arguments.metric or [PRIMARY]))
        changed = changes(history, metrics, **console.filters(arguments))

    def drawn() -> Iterator[console.Part]:
        if changed.changes:
            yield changes_table(changed.changes)
        yield brackets_text(changed)

    return console.output(arguments, asdict(changed), [asdict(change) for change in changed.changes], drawn)


COMMANDS = (add_trend, add_changes)
