"""`ipexperf show`: the newest runs, every case of a run, or what a case ran differently from before."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from ipexperf.commands import console
from ipexperf.errors import HistoryError, UsageError
from ipexperf.plan.values import positive

if TYPE_CHECKING:
    from ipexperf.history.records import Recorded, RunDetail
    from ipexperf.history.store import History
    from ipexperf.proof.structure import FingerprintDifference
    from ipexperf.report.summary import Summary


def add_show(subparsers: console.Subparsers) -> None:
    purpose = "list the newest runs; of a run the table of its cases; of a case every number, and what it ran otherwise"
    parser = console.declare_question(subparsers, "show", purpose, run_show, "show last")
    parser.add_argument("selector", metavar="RUN", nargs="?", help=f"{console.RUN}; or a CASE of the last")
    parser.add_argument("case_id", metavar="CASE", nargs="?", help="the id of a case of that run")
    parser.add_argument("--full", action="store_true", help="of a run: every number of every case")
    parser.add_argument("--limit", type=positive, default=20, metavar="N", help="runs in the list (default: 20)")
    usual = "of a case: what it ran in another run (default: in the other arm if it has one, else in its baseline)"
    parser.add_argument("--against", metavar="RUN", help=usual)
    console.add_baselines(parser, "their folder")


def run_show(arguments: argparse.Namespace) -> int:
    if arguments.selector and arguments.case_id is None:
        with console.open_history(arguments) as history:
            try:
                history.find_run(arguments.selector)
            except HistoryError:
                if arguments.selector in {recorded.case.id for recorded in history.measurements("last")}:
                    arguments.selector, arguments.case_id = "last", arguments.selector
    if arguments.case_id is None and arguments.against:
        raise UsageError("--against is of a case: name a run and its case")
    answer = _case if arguments.case_id else _run if arguments.selector else _runs
    return answer(arguments)


def _runs(arguments: argparse.Namespace) -> int:
    from ipexperf.history.tables import runs_table

    with console.open_history(arguments) as history:
        runs = [*history.runs(arguments.limit)]
    rows = [asdict(run) for run in runs]
    return console.output(arguments, rows, rows, lambda: [runs_table(runs) if runs else "No runs yet."])


def _run(arguments: argparse.Namespace) -> int:
    from ipexperf.history.values import finite

    with console.open_history(arguments) as history:
        detail = history.show(arguments.selector)

        def parts() -> Iterator[console.Part]:
            yield from drawn(history, detail)
            if arguments.full:
                yield from itertools.chain.from_iterable(map(_numbers, detail.cases))
            else:
                yield f"every number: `ipexperf show {arguments.selector} CASE`, or of all cases with --full"

        # A turn may have taken no time that is a number.
        return console.output(arguments, finite(detail.to_json()), detail.to_rows(), parts)


def drawn(history: History, detail: RunDetail) -> Iterator[console.Part]:
    """A run as it told of itself at its end."""
    from ipexperf.history.tables import run_text
    from ipexperf.report import bisections, table

    yield run_text(detail)
    yield "\n".join(table.summary_lines(summary(history, detail)))
    yield bisections.listed(detail.bisections)


def summary(history: History, detail: RunDetail) -> Summary:
    """What the run found."""
    from ipexperf.judge.rounds import PRIORS, earlier
    from ipexperf.report.summary import Summary
    from ipexperf.verdict import Verdict

    measurements = [recorded.measurement for recorded in detail.cases]
    verdicts = {recorded.case.uid: recorded.verdict or Verdict("inconclusive", "") for recorded in detail.cases}
    prior = PRIORS
    if detail.rounds:
        before = history.rounds_of_machine(detail.run.machine_key, before=detail.run.started_at)
        prior = earlier(before, detail.rounds)
    whole = Summary.of(measurements, verdicts, detail.rounds, prior)
    return replace(whole, line=detail.run.settled.get("line", ""))


def _numbers(recorded: Recorded) -> Iterator[console.Part]:
    """Everything that was measured of a case."""
    from ipexperf.history.tables import case_text, launches_text, metrics_table

    yield case_text(recorded)
    yield metrics_table(recorded)
    yield launches_text(recorded)


def _case(arguments: argparse.Namespace) -> int:
    """Tell everything of each case with this id. Two batches share one."""
    if arguments.json or arguments.csv:
        raise UsageError("what a case ran differently is text: leave --json and --csv away, or name the run alone")
    with console.open_history(arguments) as history:
        cases = history.measurements(arguments.selector)
        for recorded in console.chosen(cases, [arguments.case_id], arguments.selector):
            # Asked first: a side that was named and is not there is a mistake, before anything is printed.
            lines = [*_explanation(history, recorded, arguments)]
            console.draw((*_numbers(recorded), *lines))
    return 0


def _explanation(history: History, recorded: Recorded, arguments: argparse.Namespace) -> Iterable[str]:
    from ipexperf.proof import fingerprint_lines, structure

    state, fingerprint = recorded.common_fingerprint
    try:
        whose, old = _before(history, recorded, arguments)
    except UsageError as error:
        if arguments.against:
            raise
        yield f"  structure: compared with nothing: {error}"
        return
    yield f"  now     run {recorded.run_uid}: {fingerprint_lines.in_one_line(fingerprint)}"
    yield f"  before  {whose}: {fingerprint_lines.in_one_line(old)}"
    if fingerprint is None or old is None:
        yield "  structure: unknown, because one of the two has no fingerprint"
    elif fingerprint["version"] != old["version"]:
        versions = f"{old['version']} and {fingerprint['version']}"
        yield f"  structure: unknown, because the two fingerprints have versions {versions}"
    else:
        same = fingerprint["digest"] is not None and fingerprint["digest"] == old["digest"]
        changes = structure.diff(old, fingerprint)
        outcome = "same" if same else state.outcome if state.outcome != "same" else "changed"
        yield from _lines(outcome, changes)
        if memory := structure.memory(old, fingerprint):
            yield f"  memory of a step: {memory}"


def _lines(outcome: str, changes: FingerprintDifference) -> Iterable[str]:
    from ipexperf.proof import structure

    moved = f"; the captured step took {changes.total * 1e3:+.3g} ms" if changes.total is not None else ""
    yield f"  structure: {outcome}{moved}"
    for number, change in enumerate(changes.changes, 1):
        yield f"  {number:>3}. {structure.with_share(change.text, changes.share(change))}"
        yield from (f"         {line}" for line in change.evidence)
    if changes.slower:
        yield "  what differs in time alone (under the profiler, one step):"
        yield from (f"       {structure.with_share(change.text, changes.share(change))}" for change in changes.slower)
    if changes.unknown:
        yield "  not compared:"
        yield from (f"       {line}" for line in changes.unknown)


def _before(
    history: History, recorded: Recorded, arguments: argparse.Namespace
) -> tuple[str, Mapping[str, Any] | None]:
    """The fingerprint to compare with, and a description of where it is from."""
    arm = next((fingerprint for launch in recorded.counted if (fingerprint := launch.document.get("against"))), None)
    if arguments.against:
        of_run = history.measurements(arguments.against)
        same_id = console.chosen(of_run, [recorded.case.id], arguments.against)
        others = [other for other in same_id if other.case == recorded.case]
        if not others:
            raise UsageError(f"run {arguments.against} has {recorded.case.id} only in other batches or versions")
        return f"run {others[0].run_uid}", others[0].fingerprint
    if arm is not None and recorded.verdict and recorded.verdict.pairs:
        return f"the other arm ({recorded.verdict.pairs.against})", arm
    from ipexperf.judge import baseline

    baseline_case = baseline.read(arguments.baselines, recorded.machine_key).find(recorded.case)
    if baseline_case is None or baseline_case.case != recorded.case:
        raise UsageError(
            f"nothing was accepted for {recorded.case.id} on {recorded.machine_key}: name a run with --against"
        )
    old = history.accepted_fingerprint(baseline_case)
    if old is None:
        raise UsageError(
            f"this history has no fingerprint from when the baseline of {recorded.case.id} was accepted: "
            "name a run with --against"
        )
    return f"baseline, accepted {baseline_case.accepted_at[:10]} by {baseline_case.accepted_by}", old


COMMANDS = (add_show,)
