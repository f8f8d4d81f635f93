"""`ipexperf why RUN CASE`: what ran differently from before, and its share of the time difference."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ipexperf.commands import console
from ipexperf.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ipexperf.history.records import Recorded
    from ipexperf.history.store import History
    from ipexperf.judge.structure import FingerprintDifference

BASELINE = "baseline"


def add_why(subparsers: console.Subparsers) -> None:
    parser = console.declare(subparsers, "why", "show what a case ran differently from before")
    parser.add_argument("selector", metavar="RUN", help="last, last~1, a date, the start of a uid or commit")
    parser.add_argument("case_id", metavar="CASE", help="the id of a case of that run")
    sides = parser.add_mutually_exclusive_group()
    sides.add_argument("--against", default=BASELINE, metavar="RUN", help="another run, or baseline (the default)")
    sides.add_argument("--arm", action="store_true", help="the other arm, of a case that was measured in pairs")
    console.add_baselines(parser, "their folder")
    console.add_history(parser)
    parser.set_defaults(run=run_why)


def run_why(arguments: argparse.Namespace) -> int:
    """Explain each case with this id. Two batches share one."""
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
    from ipexperf.history.recorded_fingerprints import fingerprint_of
    from ipexperf.judge import structure
    from ipexperf.report import fingerprints

    yield recorded.case.label
    state, fingerprint = fingerprint_of(recorded)
    yield f"  now     run {recorded.run_uid}: {fingerprints.in_one_line(fingerprint)}"
    whose, old = _before(history, recorded, arguments)
    yield f"  before  {whose}: {fingerprints.in_one_line(old)}"
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
    from ipexperf.judge import structure

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
    from ipexperf.history import recorded_fingerprints

    if arguments.arm:
        return _arm(recorded)
    if arguments.against != BASELINE:
        others = [x for x in named(history, arguments.against, recorded.case.id) if x.case == recorded.case]
        if not others:
            raise UsageError(f"run {arguments.against} has {recorded.case.id} only in other batches or versions")
        return f"run {others[0].run_uid}", recorded_fingerprints.fingerprint_of(others[0])[1]
    from ipexperf.judge import baseline

    baseline_case = baseline.read(arguments.baselines, recorded.machine_key).find(recorded.case)
    if baseline_case is None or baseline_case.case != recorded.case:
        raise UsageError(
            f"nothing was accepted for {recorded.case.id} on {recorded.machine_key}: name a run with --against"
        )
    old = recorded_fingerprints.accepted(history, baseline_case)
    if old is None:
        raise UsageError(
            f"this history has no fingerprint from when the baseline of {recorded.case.id} was accepted: "
            "name a run with --against"
        )
    return f"baseline, accepted {baseline_case.accepted_at[:10]} by {baseline_case.accepted_by}", old


TOPIC = console.HISTORY
COMMANDS = (add_why,)
