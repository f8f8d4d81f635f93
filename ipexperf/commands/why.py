"""`ipexperf why RUN CASE`: what ran differently from before, and its share of the time difference."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from ipexperf.commands import console
from ipexperf.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ipexperf.history.records import Recorded
    from ipexperf.history.store import History
    from ipexperf.judge.structure import Difference

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
    from ipexperf.history.store import History

    with History.open(arguments.db, create=False) as history:
        for recorded in _named(history, arguments.selector, arguments.case_id):
            for line in _told(history, recorded, arguments):
                sys.stdout.write(line + "\n")
    return 0


def _named(history: History, selector: str, case_id: str) -> list[Recorded]:
    found = history.measurements(selector)
    chosen = [recorded for recorded in found if recorded.case.id == case_id]
    if not chosen:
        from ipexperf.bench import registry

        known = sorted({recorded.case.id for recorded in found})
        raise UsageError(f"run {selector}: {registry.unknown('case', case_id, known)}")
    return chosen


def _told(history: History, recorded: Recorded, arguments: argparse.Namespace) -> Iterable[str]:
    from ipexperf.history.recorded_fingerprints import ran
    from ipexperf.judge import structure
    from ipexperf.report import fingerprints

    yield f"{recorded.case.id} (batch {recorded.case.batch})"
    state, found = ran(recorded)
    yield f"  now     run {recorded.run_uid}: {fingerprints.in_one_line(found)}"
    whose, old = _before(history, recorded, arguments)
    yield f"  before  {whose}: {fingerprints.in_one_line(old)}"
    if found is None or old is None:
        yield "  structure: unknown, for one of the two has no fingerprint"
    elif found["version"] != old["version"]:
        yield f"  structure: unknown, for the two are written down in versions {old['version']} and {found['version']}"
    else:
        same = found["digest"] is not None and found["digest"] == old["digest"]
        shown = structure.diff(old, found)
        outcome = "same" if same else state.outcome if state.outcome != "same" else "changed"
        yield from _lines(outcome, shown)
        if memory := structure.memory(old, found):
            yield f"  memory of a step: {memory}"


def _lines(outcome: str, shown: Difference) -> Iterable[str]:
    from ipexperf.judge import structure

    moved = f"; the captured step took {shown.total * 1e3:+.3g} ms" if shown.total is not None else ""
    yield f"  structure: {outcome}{moved}"
    for number, change in enumerate(shown.changes, 1):
        yield f"  {number:>3}. {structure.with_share(change.text, shown.share(change))}"
        yield from (f"         {line}" for line in change.evidence)
    if shown.slower:
        yield "  what differs in time alone (under the profiler, one step):"
        yield from (f"       {structure.with_share(change.text, shown.share(change))}" for change in shown.slower)
    if shown.unknown:
        yield "  not compared:"
        yield from (f"       {line}" for line in shown.unknown)


def _arm(recorded: Recorded) -> tuple[str, Mapping[str, Any]]:
    from ipexperf.case import AGAINST

    old = next((one for launch in recorded.counted if (one := launch.document.get("against"))), None)
    if old is None:
        raise UsageError(
            f"run {recorded.run_uid} does not have what another arm ran beside {recorded.case.id}: "
            "only cases of --perf-against have one"
        )
    return f"the other arm ({dict(recorded.case.knobs).get(AGAINST, '')})", old


def _before(
    history: History, recorded: Recorded, arguments: argparse.Namespace
) -> tuple[str, Mapping[str, Any] | None]:
    """The fingerprint to compare with, and a description of where it is from."""
    from ipexperf.history import recorded_fingerprints

    if arguments.arm:
        return _arm(recorded)
    if arguments.against != BASELINE:
        others = [x for x in _named(history, arguments.against, recorded.case.id) if x.case == recorded.case]
        if not others:
            raise UsageError(f"run {arguments.against} has {recorded.case.id} in other batches or versions alone")
        return f"run {others[0].run_uid}", recorded_fingerprints.ran(others[0])[1]
    from ipexperf.judge import baseline

    known = baseline.read(arguments.baselines, recorded.machine_key).find(recorded.case)
    if known is None or known.case != recorded.case:
        raise UsageError(
            f"nothing was accepted for {recorded.case.id} on {recorded.machine_key}: name a run with --against"
        )
    old = recorded_fingerprints.accepted(history, known)
    if old is None:
        raise UsageError(
            f"this history does not have what ran when the baseline of {recorded.case.id} was accepted: "
            "name a run with --against"
        )
    return f"baseline, accepted {known.accepted_at[:10]} by {known.accepted_by}", old


COMMANDS = (add_why,)
