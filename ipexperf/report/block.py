"""The text of a failed test: the verdict, what differs, what ran otherwise, and how to reproduce or accept it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ipexperf.case import AGAINST
from ipexperf.judge.sentence import details, headline
from ipexperf.outcomes import has_numbers, row
from ipexperf.redaction import without_numbers
from ipexperf.report import faq
from ipexperf.report.functions import counts
from ipexperf.report.lines import Page, broken, wrapped
from ipexperf.result import Launch, Measurement
from ipexperf.units import plural
from ipexperf.verdict import BaselineEvidence, Structure, Verdict

LABEL = 12
LOG_LINES = 12
"""Number of last lines of a failed worker to show. The history has more."""


def failure_block(
    measurement: Measurement, verdict: Verdict, differences: Sequence[str], reproduce: str, accept: str
) -> str:
    """The text shown for a failed case instead of a traceback. Its first line is also in pytest's short summary."""
    alarm = _alarm(verdict.structure) if verdict.structure and not row(verdict.outcome).fails else ""
    lines = wrapped(f"{alarm or verdict.outcome.upper()}: {headline(verdict)}")
    for label, text in _rows(measurement, verdict, differences, reproduce, accept):
        indent = " " * (LABEL + 2)
        # Never wrap commands and logs, because people copy them.
        whole = label in ("reproduce", "accept", "stderr")
        parts = text.splitlines() if whole else broken(text, Page.width - LABEL - 4)
        lines.append(f"  {label:<{LABEL}}{parts[0] if parts else ''}".rstrip())
        lines += [f"{indent}{part}".rstrip() for part in parts[1:]]
    return "\n".join(lines)


def _rows(
    measurement: Measurement, verdict: Verdict, differences: Sequence[str], reproduce: str, accept: str
) -> Iterator[tuple[str, str]]:
    case = measurement.case
    if case.inputs:
        yield "case", case.label
    if verdict.outcome == "failed":
        yield from _failures(measurement.counted)
    elif verdict.outcome == "invalid":
        yield from _checks(measurement.counted)
    yield from _listed("differs", differences)
    if isinstance(verdict.evidence, BaselineEvidence):
        yield "baseline", _baseline(verdict.evidence)
    elif verdict.pairs:
        yield AGAINST, verdict.pairs.against
    structure = verdict.structure
    unsure = [structure.reason] if structure and structure.outcome in ("changed", "unstable") else []
    yield from _listed("besides", [*counts(measurement), *details(verdict)] or unsure)
    if verdict.outcome != "failed":
        yield from (("note", note) for note in _notes(measurement.counted))
    yield "reproduce", reproduce
    if accept and not has_numbers(verdict.alone.outcome):
        yield "accept", f"not possible: what is {verdict.outcome} never becomes a baseline"
    elif accept:
        yield "accept", accept
    wrong = [check.name for launch in measurement.counted for check in launch.proof if not check.ok]
    if commands := faq.commands([verdict.outcome, *wrong, *(other.metric for other in verdict.moved)]):
        yield "help", commands


def _listed(label: str, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """These lines, the first with the label."""
    yield from (("" if index else label, line) for index, line in enumerate(lines))


def _alarm(structure: Structure) -> str:
    if not structure.fails:
        return ""
    if structure.losses:
        return "AN OPTIMISATION WAS LOST"
    return "OTHER WORK" if structure.work else "WHAT RAN CHANGED"


def _failures(launches: Sequence[Launch]) -> Iterator[tuple[str, str]]:
    bad = [launch for launch in launches if launch.outcome != "ok"]
    for launch in bad if len(launches) > 1 else ():  # the reason says it of a single one
        yield "launch", f"{launch.index}: {launch.outcome}: {launch.reason}"
    logs = [launch.log.strip().splitlines() for launch in bad if launch.log.strip()]
    if logs:
        yield "stderr", "\n".join(logs[0][-LOG_LINES:])


def _checks(launches: Sequence[Launch]) -> Iterator[tuple[str, str]]:
    """Everything that was wrong, without duplicates, with the launches concerned."""
    by_check: dict[tuple[str, str], list[int]] = {}
    for launch in launches:
        for label, checks in (("proof", launch.proof), ("accuracy", launch.accuracy)):
            for check in checks:
                if not check.ok:
                    by_check.setdefault((label, str(check)), []).append(launch.index)
        if launch.contended:
            by_check.setdefault(("contended", launch.contended), []).append(launch.index)
    for (label, text), indexes in by_check.items():
        word = "launch" if len(indexes) == 1 else "launches"
        yield label, f"{text} ({word} {', '.join(map(str, indexes))})"


def _notes(launches: Sequence[Launch]) -> Iterator[str]:
    """Notes on how the numbers were taken, those on too few samples in one."""
    if few := [launch.fewer_note for launch in launches if launch.fewer]:
        yield f"{plural(len(few), 'launch', 'launches')} {few[0]}"
    notes = [note for launch in launches for note in launch.notes if note not in few]
    for note in {without_numbers(note): note for note in reversed(notes)}.values():
        yield f"a launch {note}"


def _baseline(evidence: BaselineEvidence) -> str:
    text = f"{plural(evidence.sessions, 'session')} up to {evidence.started_at[:10]}"
    text += f", commit {evidence.commit[:12]}" if evidence.commit else ""
    text += f"; accepted by {evidence.accepted_by} on {evidence.accepted_at[:10]}: {evidence.reason}"
    return text + (f"; EXPIRED on {evidence.expires}" if evidence.expired else "")
