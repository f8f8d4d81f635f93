"""`ipexperf compare` and `ipexperf speedup`: ratios with intervals between recorded cases."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict

from ipexperf.commands import console
from ipexperf.errors import UsageError
from ipexperf.result import METRICS, PRIMARY

NOTHING = "No two sound cases differ only in a dtype, a stack or a device: name more runs, or measure both."


def add_compare(subparsers: console.Subparsers) -> None:
    parser = console.add_parser(subparsers, "compare", "compare every case of two runs")
    parser.add_argument("first", metavar="RUN", help=console.RUN)
    parser.add_argument("second", metavar="RUN", nargs="?", default="last", help="as above (default: %(default)s)")
    parser.add_argument("--metric", choices=tuple(METRICS), default=PRIMARY, help="default: %(default)s")
    parser.set_defaults(run=run_compare)


def run_compare(arguments: argparse.Namespace) -> int:
    from ipexperf.history.comparison import compare
    from ipexperf.history.tables import OVER_LAUNCHES, compared_table, comparison_text, differences_text

    with console.open_history(arguments) as history:
        first, second = history.show(arguments.first), history.show(arguments.second)
    if first.run.uid == second.run.uid:
        raise UsageError(f"{arguments.first!r} and {arguments.second!r} are the same run {first.run.uid}: name two")
    comparison = compare(first, second, arguments.metric)

    def drawn() -> Iterator[console.Part]:
        yield comparison_text(comparison)
        yield compared_table(comparison.cases) if comparison.cases else "No cases were recorded."
        yield differences_text(comparison.cases)
        yield OVER_LAUNCHES

    return console.output(arguments, asdict(comparison), [asdict(case) for case in comparison.cases], drawn)


def add_speedup(subparsers: console.Subparsers) -> None:
    from ipexperf.history.speedups import KINDS

    parser = console.add_parser(subparsers, "speedup", "show the speed-up of dtypes, stacks, devices and settings")
    parser.add_argument("selectors", metavar="RUN", nargs="*", help=f"{console.RUN} (default: last)")
    parser.add_argument("--over", action="append", choices=tuple(KINDS), help="only this kind (repeatable)")
    parser.set_defaults(run=run_speedup)


def run_speedup(arguments: argparse.Namespace) -> int:
    from ipexperf.history.speedups import KINDS, speedups
    from ipexperf.history.tables import explanation, notes_text, speedups_table, twins_text

    with console.open_history(arguments) as history:
        cases = history.cases(arguments.selectors or ["last"])
        paired = history.paired(cases)
    pairs = speedups(cases, arguments.over or tuple(KINDS), paired)

    def drawn() -> Iterator[console.Part]:
        if pairs:
            yield speedups_table(pairs)
            yield notes_text(pairs)
        yield explanation(pairs) if pairs else NOTHING
        yield twins_text(twin for rounds in paired.values() for twin in rounds.twins)

    rows = [asdict(pair) for pair in pairs]
    return console.output(arguments, rows, rows, drawn)


TOPIC = console.HISTORY
COMMANDS = (add_compare, add_speedup)
