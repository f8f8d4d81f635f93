"""`ipexperf baseline accept|list|diff|show`: manage the files that later runs are judged against."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from ipexperf.commands import console, progress
from ipexperf.errors import BaselineError

if TYPE_CHECKING:
    from ipexperf.judge.baseline import Baselines


def run_accept(arguments: argparse.Namespace) -> int:
    """Accept a run's cases. Prints refusals, which make the exit status 1."""
    from ipexperf import acceptance

    terms = acceptance.Terms(**{field.name: getattr(arguments, field.name) for field in fields(acceptance.Terms)})
    with console.open_history(arguments) as history:
        measured = history.measurements(arguments.run_selector)
        cases = console.chosen(measured, arguments.case, arguments.run_selector)
        return 1 if acceptance.accept(history, cases, terms, console.say, progress.say) else 0


def _files(arguments: argparse.Namespace) -> list[Baselines]:
    from ipexperf.judge import baseline

    if not arguments.baselines.is_dir():
        raise BaselineError(f"there is no folder {arguments.baselines}: accept a run first, or name it by --baselines")
    return baseline.every(arguments.baselines)


def run_list(arguments: argparse.Namespace) -> int:
    """List the baselines, one line each."""
    from ipexperf import units

    files = _files(arguments)
    if not files:
        console.say(f"no baseline in {arguments.baselines}: `ipexperf baseline accept` makes the first")
    for file in files:
        console.say(file.machine_key)
        for case in file.cases:
            step = units.amount(case.step_time, case.case.primary[0])
            console.say(f"  {case.case.id:<40} {step:>9}  {units.plural(len(case.sessions), 'session')}  "
                 f"accepted {case.accepted_at[:10]} by {case.accepted_by}: {case.reason}"
                 + (f"  lock {case.lock}" if case.lock else ""))  # fmt: skip
    return 0


def run_show(arguments: argparse.Namespace) -> int:
    """Show everything about a case's baselines."""
    import json
    from dataclasses import asdict

    documents = [
        {"machine_key": file.machine_key, **asdict(case)}
        for file in _files(arguments)
        for case in file.cases
        if case.case.id == arguments.case_id
    ]
    if not documents:
        raise BaselineError(f"no baseline has a case {arguments.case_id}: see `ipexperf baseline list`")
    console.say(json.dumps(documents, indent=2, default=dict))
    return 0


def run_diff(arguments: argparse.Namespace) -> int:
    """Show what a change of the baselines' folder allows. OTHER is the folder before the change."""
    from ipexperf import units
    from ipexperf.judge import baseline
    from ipexperf.judge.accept import diff

    if not arguments.other.is_dir():
        raise BaselineError(f"there is no folder {arguments.other}")
    for new in _files(arguments):
        for change in diff(baseline.read(arguments.other, new.machine_key), new):
            ratio = units.percent(change.ratio) if change.ratio else ""
            console.say(f"{change.case:<40} {change.kind}  {ratio}  {change.sessions}  {change.reason}")
    return 0


def add_baseline(subparsers: console.Subparsers) -> None:
    purpose = "accept, list, compare and show baselines"
    parser = console.declare(subparsers, "baseline", purpose, topic=console.JUDGE, example="baseline list")
    below = parser.add_subparsers(metavar="accept|list|diff|show", required=True)

    def add(name: str, purpose: str, run: console.Command) -> argparse.ArgumentParser:
        subparser = console.declare(below, name, purpose, run)
        console.add_baselines(subparser, "their folder")
        return subparser

    accept = add("accept", "accept the numbers of a run as baseline", run_accept)
    console.add_history(accept)
    accept.add_argument("run_selector", metavar="RUN", help="last, last~1, a date, the start of a uid or commit")
    accept.add_argument("--reason", required=True, help="why these numbers are right")
    accept.add_argument("--by", help="who accepts (default: the user's name)")
    accept.add_argument("--case", action="append", metavar="ID", help="only this case (repeatable)")
    accept.add_argument("--regression-ok", action="store_true", help="accept slower numbers and other answers too")
    accept.add_argument("--contended-ok", action="store_true", help="accept numbers of a busy machine too")
    accept.add_argument("--replace", action="store_true", help="forget the sessions accepted before")
    accept.add_argument("--name", help="name for the software that it ran on, for `--perf-against baseline:NAME`")
    text = "put packages into the store that may not be had again (perishable, the default), or all of them"
    accept.add_argument("--keep", nargs="?", const="perishable", choices=("perishable", "all"), help=text)
    console.add_cache(accept, "where the store is, ")
    accept.add_argument("--expires", metavar="DATE", help="the last day of validity")
    add("list", "list the accepted baselines", run_list)
    show = add("show", "show all of one case's baselines", run_show)
    show.add_argument("case_id", metavar="CASE")
    different = add("diff", "compare with another folder of baselines", run_diff)
    different.add_argument("other", type=Path, metavar="OTHER")


COMMANDS = (add_baseline,)
