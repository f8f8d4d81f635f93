"""`ipexperf gate`: turn a recorded run into an exit status, for pipelines and `git bisect run`."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ipexperf.commands import console
from ipexperf.history.records import Recorded
from ipexperf.judge.sentence import sentence
from ipexperf.outcomes import is_fine

FINE, BAD, CANNOT_ASK, CANNOT_TELL = 0, 1, 2, 125
"""`git bisect run` skips a commit on 125 and takes 1 to 124 for a bad one, so 2 must not be used there."""
BISECT = "--bisect"
WORDS = {FINE: "fine", BAD: "not fine", CANNOT_TELL: "cannot tell"}


@dataclass(frozen=True, slots=True)
class GatedCase:
    """A case as the gate tells of it."""

    name: str
    outcome: str
    reason: str
    """Why it is not fine, or an empty text."""
    lost: tuple[str, ...]
    """The optimisations whose loss failed its test."""


@dataclass(frozen=True, slots=True)
class Gated:
    """What the gate says of a run, as `--json` prints it."""

    run: str
    status: str
    exit_code: int
    cases: tuple[GatedCase, ...]
    format: Literal[1] = 1
    """The number of its schema in docs/schemas."""


def add_gate(subparsers: console.Subparsers) -> None:
    purpose = "turn a run into an exit status: 0 fine, 1 not fine, 125 not judged"
    parser = console.declare(subparsers, "gate", purpose, run_gate, console.JUDGE, "gate last")
    console.add_history(parser)
    parser.add_argument("selector", metavar="RUN", nargs="?", default="last", help=f"{console.RUN} (default: last)")
    parser.add_argument("--case", action="append", metavar="ID", help="only this case (repeatable)")
    purpose = "for git bisect run: 1 only if a case regressed; anything else that is not fine is 125"
    parser.add_argument(BISECT, action="store_true", help=purpose)
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")


def named(words: Sequence[str]) -> bool:
    """Whether this is a command line of `gate`, even one with mistakes. Only `gate` has `--bisect`."""
    return words[:1] == ["gate"] or BISECT in words


def guarded(words: Sequence[str], answer: Callable[[Sequence[str]], int]) -> int:
    """Run the gate. Exit status 1 is only for a verdict. An error is 125 for a bisection, else 2."""
    trouble = CANNOT_TELL if BISECT in words else CANNOT_ASK
    try:
        status = answer(words)
    except SystemExit as error:  # argparse has printed the reason
        status = trouble if error.code else FINE
    except Exception:  # noqa: BLE001 - a defect of ours: Python would exit with 1, which is a verdict
        traceback.print_exc()
        status = trouble
    if not console.flush(sys.stdout):
        console.complain(console.UNWRITTEN)
        status = trouble
    console.flush(sys.stderr)
    return trouble if status == CANNOT_ASK else status


def run_gate(arguments: argparse.Namespace) -> int:
    with console.open_history(arguments) as history:
        detail = history.show(arguments.selector)
    cases = console.chosen(detail.cases, arguments.case, detail.run.uid)
    whole = {} if arguments.case else detail.run.settled
    status = _for_bisect(cases) if arguments.bisect else _for_pipeline(cases, whole)
    try:
        told = Gated(detail.run.uid, detail.run.status, status, tuple(map(_told, cases)))
        if arguments.json:
            console.say_json(asdict(told))
        else:
            _say(told)
        sys.stdout.flush()
    except BrokenPipeError:
        console.silence(sys.stdout)  # the reader, such as `head`, has closed the pipe: the exit status still counts
    return status


def _told(recorded: Recorded) -> GatedCase:
    reason = sentence(recorded.verdict) if recorded.verdict else "it was not judged"
    fine = is_fine(recorded.outcome)
    return GatedCase(recorded.case.label, recorded.outcome, "" if fine else reason, recorded.lost)


def _say(told: Gated) -> None:
    counts = Counter(case.outcome for case in told.cases)
    text = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())) or "no case"
    console.say(f"{WORDS[told.exit_code]}: run {told.run} ({told.status}): {text}")
    for case in told.cases:
        for loss in case.lost:
            console.say(f"  {case.name}: lost: {loss}")
        if not is_fine(case.outcome):
            console.say(f"  {case.name}: {case.outcome}: {case.reason}")


def _for_pipeline(cases: Sequence[Recorded], settled: Mapping[str, Any]) -> int:
    """Bad if any case is known to be wrong. Unknown if no case was judged, or more than half could not be told."""
    if settled.get("fails") or any(recorded.test_failed for recorded in cases):
        return BAD
    enough = 2 * sum(recorded.untold for recorded in cases) <= len(cases)
    return FINE if enough and any(map(_fine, cases)) else CANNOT_TELL


def _for_bisect(cases: Sequence[Recorded]) -> int:
    """A commit is bad if a case regressed or lost an optimisation, and good if every case is fine."""
    if any(recorded.tested == "regressed" or recorded.lost for recorded in cases):
        return BAD
    return FINE if cases and all(map(_fine, cases)) else CANNOT_TELL


def _fine(recorded: Recorded) -> bool:
    """Whether the case's own test found nothing slower, regardless of the run as a whole."""
    return is_fine(recorded.tested or recorded.outcome)


COMMANDS = (add_gate,)
