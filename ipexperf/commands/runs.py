"""`ipexperf runs` and `ipexperf show`: list runs, and show every case of a run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict

from ipexperf.commands import console


def add_runs(subparsers: console.Subparsers) -> None:
    parser = console.add_parser(subparsers, "runs", "list the newest runs")
    parser.add_argument(
        "--limit", type=console.positive, default=20, metavar="N", help="number of runs (default: %(default)s)"
    )
    parser.set_defaults(run=run_runs)


def run_runs(arguments: argparse.Namespace) -> int:
    with console.open_history(arguments) as history:
        runs = [*history.runs(arguments.limit)]
    rows = [asdict(run) for run in runs]
    from ipexperf.history.tables import runs_table

    return console.output(arguments, rows, rows, lambda: [runs_table(runs) if runs else "No runs yet."])


def add_show(subparsers: console.Subparsers) -> None:
    parser = console.add_parser(subparsers, "show", "show every case of one run")
    parser.add_argument("selector", metavar="RUN", help=console.RUN)
    parser.set_defaults(run=run_show)


def run_show(arguments: argparse.Namespace) -> int:
    with console.open_history(arguments) as history:
        detail = history.show(arguments.selector)
        paired = history.paired(detail.cases)
    from ipexperf.history.recorded_fingerprints import fingerprint_of, medians, roof
    from ipexperf.history.tables import cases_table, failures_text, reasons_text, run_text, twins_text
    from ipexperf.history.values import finite
    from ipexperf.report import bisections
    from ipexperf.report.fingerprints import fingerprint_text
    from ipexperf.report.roofs import roofs_text

    cases = detail.cases

    def drawn() -> Iterator[console.Part]:
        yield run_text(detail)
        yield cases_table(cases) if cases else "No cases were recorded."
        yield reasons_text(cases)
        yield twins_text(twin for rounds in paired.values() for twin in rounds.twins)
        yield fingerprint_text((recorded.case.name, fingerprint_of(recorded)[1]) for recorded in cases)
        yield roofs_text((recorded.case.id, medians(recorded), roof(recorded)) for recorded in cases)
        yield failures_text(cases)
        yield bisections.listed(detail.bisections)

    # A turn may have taken no time that is a number.
    return console.output(arguments, finite(detail.to_json()), detail.to_rows(), drawn)


TOPIC = console.HISTORY
COMMANDS = (add_runs, add_show)
