"""`ipexperf show`: the newest runs, every case of a run, or what a case ran differently from before."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ipexperf.commands import console
from ipexperf.errors import UsageError

if TYPE_CHECKING:
    from ipexperf.history.records import Recorded, RunDetail
    from ipexperf.history.store import History
    from ipexperf.proof.structure import FingerprintDifference

BASELINE = "baseline"


def add_show(subparsers: console.Subparsers) -> None:
    purpose = "list the newest runs; of one run every case; of a case what it ran differently from before"
    parser = console.declare_question(subparsers, "show", purpose, run_show)
    parser.add_argument("selector", metavar="RUN", nargs="?", help=f"{console.RUN} (default: list the newest runs)")
    parser.add_argument("case_id", metavar="CASE", nargs="?", help="the id of a case of that run")
    parser.add_argument(
        "--limit", type=console.positive, default=20, metavar="N", help="runs in the list (default: %(default)s)"
    )
    sides = parser.add_mutually_exclusive_group()
    sides.add_argument("--against", default=BASELINE, metavar="RUN", help="of a case: another run (default: baseline)")
    sides.add_argument("--arm", action="store_true", help="of a case that was measured in pairs: the other arm")
    console.add_baselines(parser, "their folder")


def run_show(arguments: argparse.Namespace) -> int:
    if arguments.case_id is None and (arguments.arm or arguments.against != BASELINE):
        raise UsageError("--against and --arm are of a case: name a run and its case")
    if arguments.selector is None:
        return _runs(arguments)
    return _run(arguments) if arguments.case_id is None else _case(arguments)


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
        # A turn may have taken no time that is a number.
        return console.output(arguments, finite(detail.to_json()), detail.to_rows(), lambda: drawn(history, detail))


def drawn(history: History, detail: RunDetail) -> Iterator[console.Part]:
    """A run, for people."""
    from ipexperf.history.tables import cases_table, failures_text, reasons_text, run_text, twins_text
    from ipexperf.proof.fingerprint_lines import fingerprint_text
    from ipexperf.proof.roof_lines import rate_text
    from ipexperf.report import bisections

    cases = detail.cases
    yield run_text(detail)
    yield cases_table(cases) if cases else "No cases were recorded."
    yield reasons_text(cases)
    yield twins_text(twin for rounds in history.paired(cases).values() for twin in rounds.twins)
    yield fingerprint_text((recorded.case.name, recorded.fingerprint) for recorded in cases)
    rates = [(recorded.case.id, rate_text(recorded.medians)) for recorded in cases]
    yield "\n".join(f"{name} did {text}" for name, text in rates if text)
    yield failures_text(cases)
    yield bisections.listed(detail.bisections)


def _case(arguments: argparse.Namespace) -> int:
    """Explain each case with this id. Two batches share one."""
    if arguments.json or arguments.csv:
        raise UsageError("what a case ran differently is text: leave --json and --csv away, or name the run alone")
    with console.open_history(arguments) as history:
        for recorded in named(history, arguments.selector, arguments.case_id):
            for line in _explanation(history, recorded, arguments):
                console.say(line)
    return 0


def named(history: History, selector: str, case_id: str) -> list[Recorded]:
    measurements = history.measurements(selector)
    chosen = [recorded for recorded in measurements if case_id in (recorded.case.id, recorded.case.name)]
    if not chosen:
        from ipexperf.bench import registry

        ids = sorted({recorded.case.id for recorded in measurements})
        raise UsageError(f"run {selector}: {registry.unknown('case', case_id, ids)}")
    return chosen


def _explanation(history: History, recorded: Recorded, arguments: argparse.Namespace) -> Iterable[str]:
    from ipexperf.proof import fingerprint_lines, structure

    yield recorded.case.label
    state, fingerprint = recorded.common_fingerprint
    yield f"  now     run {recorded.run_uid}: {fingerprint_lines.in_one_line(fingerprint)}"
    whose, old = _before(history, recorded, arguments)
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


def _arm(recorded: Recorded) -> tuple[str, Mapping[str, Any]]:
    old = next((fingerprint for launch in recorded.counted if (fingerprint := launch.document.get("against"))), None)
    if old is None:
        raise UsageError(
            f"run {recorded.run_uid} has no fingerprint of another arm beside {recorded.case.id}: "
            "only cases of --perf-against have one"
        )
    return f"the other arm ({getattr(recorded.verdict and recorded.verdict.evidence, 'against', '')})", old


def _before(
    history: History, recorded: Recorded, arguments: argparse.Namespace
) -> tuple[str, Mapping[str, Any] | None]:
    """The fingerprint to compare with, and a description of where it is from."""
    if arguments.arm:
        return _arm(recorded)
    if arguments.against != BASELINE:
        same_id = named(history, arguments.against, recorded.case.id)
        others = [other for other in same_id if other.case == recorded.case]
        if not others:
            raise UsageError(f"run {arguments.against} has {recorded.case.id} only in other batches or versions")
        return f"run {others[0].run_uid}", others[0].fingerprint
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
