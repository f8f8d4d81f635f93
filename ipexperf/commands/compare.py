"""`ipexperf compare`: ratios with intervals between recorded cases, of two runs or of one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict

from ipexperf.commands import console
from ipexperf.errors import UsageError
from ipexperf.ratio import flat
from ipexperf.result import PRIMARY

NOTHING = "No two sound cases differ only in a dtype, a stack or a device: name more runs, or measure both."


def add_compare(subparsers: console.Subparsers) -> None:
    from ipexperf.history.speedups import KINDS

    purpose = "compare every case of two runs, or with --ratios dtypes, stacks, devices and settings"
    parser = console.declare_question(subparsers, "compare", purpose, run_compare, "compare last~1 last")
    parser.add_argument("runs", metavar="RUN", nargs="*", help=f"{console.RUN}: two, or one and last; of ratios: any")
    console.add_metric(parser, f"of two runs (default: {PRIMARY})")
    text = "how many times as fast cases are that differ in nothing but a dtype, a stack, a device or settings"
    parser.add_argument("--ratios", action="store_true", help=text)
    text = f"only this kind of ratio (repeatable): {', '.join(KINDS)}"
    parser.add_argument("--over", action="append", choices=tuple(KINDS), metavar="KIND", help=text)


def run_compare(arguments: argparse.Namespace) -> int:
    if arguments.ratios or arguments.over:
        return _ratios(arguments)
    from ipexperf.history.comparison import compare
    from ipexperf.history.tables import INTERVALS, compared_table, comparison_text, differences_text

    if len(arguments.runs) not in (1, 2):
        raise UsageError(f"name the run to compare the last one with, or two runs: {len(arguments.runs)} are named")
    named = (*arguments.runs, "last")[:2]
    with console.open_history(arguments) as history:
        first, second = (history.show(selector) for selector in named)
    if first.run.uid == second.run.uid:
        raise UsageError(f"{named[0]!r} and {named[1]!r} are the same run {first.run.uid}: name two")
    comparison = compare(first, second, arguments.metric or PRIMARY)

    def drawn() -> Iterator[console.Part]:
        yield comparison_text(comparison)
        yield compared_table(comparison.cases) if comparison.cases else "No cases were recorded."
        yield differences_text(comparison.cases)
        yield INTERVALS

    rows = [flat(case) for case in comparison.cases]
    return console.output(arguments, {**asdict(comparison), "cases": rows}, rows, drawn)


def _ratios(arguments: argparse.Namespace) -> int:
    if arguments.metric is not None:
        raise UsageError("ratios are of throughput, and of latencies where there are any: leave --metric away")
    from ipexperf.history.speedups import KINDS, speedups
    from ipexperf.history.tables import INTERVALS, notes_text, speedups_table, twins_text

    with console.open_history(arguments) as history:
        cases = history.cases(arguments.runs or ["last"])
        paired = history.paired(cases)
    pairs = speedups(cases, arguments.over or tuple(KINDS), paired)

    def drawn() -> Iterator[console.Part]:
        if pairs:
            yield speedups_table(pairs)
            yield notes_text(pairs)
        yield INTERVALS if pairs else NOTHING
        yield twins_text(twin for rounds in paired.values() for twin in rounds.twins)

    rows = [flat(pair) for pair in pairs]
    return console.output(arguments, rows, rows, drawn)


COMMANDS = (add_compare,)
