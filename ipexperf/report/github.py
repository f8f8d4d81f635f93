"""GitHub Actions: the summary of a job, and annotations for what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ipexperf.judge.sentence import sentence
from ipexperf.report import functions, markdown
from ipexperf.report.advice import advice
from ipexperf.report.markdown import CaseRow
from ipexperf.report.summary import Summary

SUMMARY = "GITHUB_STEP_SUMMARY"
ACTIONS = "GITHUB_ACTIONS"
LIMIT = 2**20
"""Largest summary in bytes. GitHub drops larger ones completely."""
MOST = 10
"""Most errors, and most warnings, that GitHub shows for a step."""


def lines(summary: Summary, run: str | None, environment: Mapping[str, str]) -> list[str]:
    """Append the summary to the job's file if there is one, and return the lines that make annotations."""
    in_rows = [*summary.networks.values(), *summary.functions]
    if not in_rows:
        return []
    cases, printed = markdown.rows(in_rows, summary.speeds), []
    if path := environment.get(SUMMARY):
        conclusions = [*advice(summary), *filter(None, [functions.headline(summary.functions)])]
        printed += _append(Path(path), cases, summary.line, run, conclusions)
    if environment.get(ACTIONS) == "true":
        printed += annotated(cases, summary.line, fails=summary.fails)
    return printed


def annotated(cases: Iterable[CaseRow], line: str, *, fails: bool) -> list[str]:
    """An error for each failed case, or for the run if only that fails, and warnings."""
    by_level: dict[str, list[tuple[str, str]]] = {"error": [], "warning": []}
    if line:
        by_level["error" if fails else "warning"].append(("ipexperf: the run", line))
    for row in cases:
        if row.verdict is None:
            continue
        name = row.case.label
        structure = row.verdict.structure
        if structure is not None and structure.fails and structure.losses:
            by_level["error"].append((f"lost: {name}", "; ".join(structure.losses)))
        elif row.verdict.fails:
            by_level["error"].append((f"{row.outcome}: {name}", sentence(row.verdict)))
        if row.verdict.contended:
            by_level["warning"].append((f"contended: {name}", sentence(row.verdict)))
        if structure is not None and structure.outcome == "changed":
            by_level["warning"].append((f"what ran changed: {name}", "; ".join(structure.changes) or structure.reason))
    return [_command(kind, title, text) for kind, message in by_level.items() for title, text in _limited(message)]


def _limited(lines: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """As many lines as GitHub shows. The last says how many are missing."""
    if len(lines) <= MOST:
        return lines
    return [*lines[: MOST - 1], ("ipexperf", f"and {len(lines) - MOST + 1} more: see the summary")]


def _command(kind: str, title: str, text: str) -> str:
    return f"::{kind} title={_escaped(title).replace(':', '%3A').replace(',', '%2C')}::{_escaped(text)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _append(path: Path, cases: Sequence[CaseRow], line: str, run: str | None, advice: Sequence[str]) -> list[str]:
    """Append what there is room for. If it cannot be written, say so without failing."""
    try:
        room = LIMIT - (path.stat().st_size if path.exists() else 0)
        text = markdown.text(cases, line, run, limit=room, advice=advice)
        if not text:
            return [f"{SUMMARY}: {path} is full; nothing was appended"]
        with path.open("a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        return [f"{SUMMARY}: {path} cannot be written: {error.strerror}"]
    return []
