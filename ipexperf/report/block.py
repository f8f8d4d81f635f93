"""The text of a failed test: the case, the change, the baseline, the reason, and how to reproduce or accept it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence

from ipexperf.case import AGAINST
from ipexperf.outcomes import has_numbers
from ipexperf.redaction import without_numbers
from ipexperf.report import faq
from ipexperf.report.lines import Page
from ipexperf.report.moved import changed
from ipexperf.result import METRICS, PRIMARY, THROUGHPUT, Launch, Measurement
from ipexperf.units import digits, percent, plural, seconds
from ipexperf.verdict import BaselineEvidence, Evidence, PairsEvidence, Structure, Verdict

LABEL = 12
LOG_LINES = 12
"""Number of last lines of a failed worker to show. The history has more."""


def failure_block(
    measurement: Measurement, verdict: Verdict, differences: Sequence[str], reproduce: str, accept: str
) -> str:
    """The text shown for a failed case instead of a traceback."""
    structure = f", {_alarm(verdict.structure)}" if verdict.structure is not None and verdict.structure.fails else ""
    speed = f", speed alone: {verdict.speed.outcome}" if verdict.speed and verdict.outcome == "invalid" else ""
    lines = [f"{measurement.case.label}: {verdict.outcome.upper()}{structure}{speed}"]
    for label, text in _rows(measurement, verdict, differences, reproduce, accept):
        indent = " " * (LABEL + 2)
        # Never wrap commands and logs, because people copy them.
        whole = label in ("reproduce", "accept", "stderr")
        parts = (
            text.splitlines()
            if whole
            else textwrap.wrap(text, Page.width - LABEL - 4, break_long_words=False, break_on_hyphens=False)
        )
        lines.append(f"  {label:<{LABEL}}{parts[0] if parts else ''}".rstrip())
        lines += [f"{indent}{part}".rstrip() for part in parts[1:]]
    return "\n".join(lines)


def _rows(
    measurement: Measurement, verdict: Verdict, differences: Sequence[str], reproduce: str, accept: str
) -> Iterator[tuple[str, str]]:
    yield "why", verdict.reason
    if verdict.outcome == "failed":
        yield from _failures(measurement.counted)
    elif verdict.outcome == "invalid":
        yield from _checks(measurement.counted)
    new = measurement.median(PRIMARY)
    if new is not None and verdict.outcome != "failed":
        yield "measured", _measured(measurement, new)
        yield from (("note", note) for note in _notes(measurement.counted))
    for other in verdict.moved:
        yield other.metric, f"{changed(other)}: {other.outcome}"
    yield from _compared(verdict.evidence, differences, measurement.case.step)
    yield from _structure_lines(verdict.structure)
    yield "reproduce", reproduce
    if accept and not has_numbers(verdict.alone.outcome):
        yield "accept", f"not possible: what is {verdict.outcome} never becomes a baseline"
    elif accept:
        yield "accept", accept
    wrong = [check.name for launch in measurement.counted for check in launch.proof if not check.ok]
    if commands := faq.commands([verdict.outcome, *wrong, *(other.metric for other in verdict.moved)]):
        yield "help", commands


def _compared(evidence: Evidence | None, differences: Sequence[str], step: str) -> Iterator[tuple[str, str]]:
    """The baseline or arm that the case was compared with, and the differences from it."""
    if isinstance(evidence, PairsEvidence):
        yield AGAINST, _pairs(evidence)
        label, none = "differs", "nothing"
    else:
        label, none = "changed", "nothing that is recorded of the environment"
        if evidence is not None:
            yield "baseline", _baseline(evidence, step)
    if evidence is not None and not differences:
        yield label, none
    for index, line in enumerate(differences):
        yield "" if index else label, line


def _structure_lines(structure: Structure | None) -> Iterator[tuple[str, str]]:
    """The changes of structure: first the losses, which can only cost time, then all."""
    if structure is None or structure.outcome in ("same", "unknown"):
        return
    for index, loss in enumerate(structure.losses):
        yield "" if index else "lost", loss
    by_option = structure.fails and not structure.losses and not structure.work
    option = " (--perf-structure fail)" if by_option else ""
    yield "what ran", f"{structure.outcome}{option}: {structure.reason}"
    for change in structure.changes:
        yield "", change


def _alarm(structure: Structure) -> str:
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


def _measured(measurement: Measurement, new: float) -> str:
    values = measurement.values(PRIMARY)
    case = measurement.case
    text = f"{seconds(new)} a {case.step}, median of {plural(len(values), 'launch', 'launches')}"
    text += f" ({', '.join(seconds(value) for value in values)})" if len(values) > 1 else ""
    throughput = measurement.median(THROUGHPUT) if case.inputs else None
    text += f"; {digits(throughput)} {METRICS[THROUGHPUT].unit}" if throughput is not None else ""
    return text


def _pairs(evidence: PairsEvidence) -> str:
    ratios = ", ".join(percent(math.exp(ratio)) for ratio in evidence.log_ratios if math.isfinite(ratio))
    return f"{evidence.against}: {plural(len(evidence.log_ratios), 'pair')} ({ratios}); {evidence.stopped}"


def _baseline(evidence: BaselineEvidence, step: str) -> str:
    text = f"{seconds(evidence.step_time)} a {step}, " if evidence.step_time is not None else ""
    text += f"{plural(evidence.sessions, 'session')} up to {evidence.started_at[:10]}"
    text += f", commit {evidence.commit[:12]}" if evidence.commit else ""
    text += f"; accepted by {evidence.accepted_by} on {evidence.accepted_at[:10]}: {evidence.reason}"
    return text + (f"; EXPIRED on {evidence.expires}" if evidence.expired else "")
