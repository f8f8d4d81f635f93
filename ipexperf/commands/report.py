"""`ipexperf report`: the history as pages for a browser, and one run as markdown."""

from __future__ import annotations

import argparse
from pathlib import Path

from ipexperf.commands import console
from ipexperf.errors import UsageError
from ipexperf.history.records import Recorded
from ipexperf.history.rounds import Paired
from ipexperf.outcomes import has_numbers
from ipexperf.report.markdown import CaseRow
from ipexperf.report.units import plural
from ipexperf.result import PRIMARY


def add_report(subparsers: console.Subparsers) -> None:
    purpose = "write the history as pages for a browser, or one run as markdown"
    parser = console.declare(subparsers, "report", purpose)
    console.add_history(parser)
    parser.add_argument("selector", metavar="RUN", nargs="?", help=f"of --markdown: {console.RUN} (default: last)")
    parser.add_argument("--html", type=Path, metavar="DIR", help="write pages there: new, empty, or an older report")
    newest = "of --html: draw the newest N runs (default: 400)"
    parser.add_argument("--limit", type=console.positive, metavar="N", help=newest)
    parser.add_argument("--markdown", action="store_true", help="print the run as markdown")
    parser.set_defaults(run=run_report)


def run_report(arguments: argparse.Namespace) -> int:
    if (arguments.html is None) == (not arguments.markdown):
        raise UsageError("report needs one of --html DIR and --markdown: name what to write")
    if arguments.html is None and arguments.limit is not None:
        raise UsageError("--limit is for --html: --markdown shows one run")
    if arguments.html is not None and arguments.selector is not None:
        raise UsageError("--html draws every run: a RUN is for --markdown")
    return _write_pages(arguments) if arguments.html is not None else _print(arguments)


def _write_pages(arguments: argparse.Namespace) -> int:
    from ipexperf.dashboard import folder, writing

    folder.check(arguments.html)
    with console.open_history(arguments) as history:
        written = writing.write(history, arguments.html, arguments.limit or writing.RUNS)
    older = f"; {plural(written.older, 'older run')} not drawn" if written.older else ""
    console.say(f"{written.index}: {plural(written.cases, 'case')} of {plural(written.runs, 'run')}{older}")
    return 0


def _print(arguments: argparse.Namespace) -> int:
    from ipexperf.report import markdown

    with console.open_history(arguments) as history:
        detail = history.show(arguments.selector or "last")
        paired = history.paired(detail.cases)
    line = detail.run.settled.get("line", "")
    rows = [_row(recorded, paired.get((recorded.run_uid, recorded.machine_key))) for recorded in detail.cases]
    console.say(markdown.text(rows, line, detail.run.uid).rstrip())
    return 0


def _row(recorded: Recorded, paired: Paired | None) -> CaseRow:
    from ipexperf.history.recorded_fingerprints import medians
    from ipexperf.report.markdown import CaseRow

    numbers = medians(recorded)
    step, speed = numbers.get(PRIMARY), numbers.get("throughput")
    return CaseRow(recorded.case, step, speed, recorded.outcome, recorded.verdict, _factor(recorded, paired))


def _factor(recorded: Recorded, paired: Paired | None) -> str:
    """Times the throughput of stock fp32, where the two took turns in this run and the case's numbers count."""
    from ipexperf.report.speeds import SpeedRatio, to_beat

    base = to_beat(recorded.case)
    if paired is None or base == recorded.case or not has_numbers(recorded.outcome):
        return ""
    estimate = paired.between(base, recorded.case)
    return "" if estimate is None else SpeedRatio(estimate.ratio(inverted=True), paired=True).cell


TOPIC = console.HISTORY
COMMANDS = (add_report,)
