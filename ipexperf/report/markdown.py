"""A run as markdown: for the summary of a GitHub job, a comment or a mail."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ipexperf import outcomes
from ipexperf.case import Case, FunctionCase, NetworkCase, ProgramCase
from ipexperf.judge.sentence import details, of_time, sentence
from ipexperf.report.speeds import FACTOR, Speeds
from ipexperf.report.summary import Judged
from ipexperf.result import PRIMARY, THROUGHPUT
from ipexperf.units import amount, digits, plural
from ipexperf.verdict import Verdict

COLUMNS = {NetworkCase: ("batch", "step", "items/s", FACTOR), FunctionCase: ("call",), ProgramCase: ("run",)}
"""The columns with numbers of each kind of case, which has a table of its own."""
DETAILS = 4
"""Most sentences on one case."""


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A row of the table."""

    case: Case
    step: float | None
    throughput: float | None
    outcome: str
    verdict: Verdict | None
    factor: str = ""
    """The ratio to the throughput of stock fp32, with its interval, or an empty text."""


def rows(judged: Iterable[Judged], speeds: Speeds) -> list[CaseRow]:
    """The rows of cases that were just measured. Failed cases have no numbers."""
    factors = speeds.over_plain()
    lines = []
    for measurement, verdict in judged:
        case = measurement.case
        step, speed = (None if measurement.failure else measurement.median(name) for name in (PRIMARY, THROUGHPUT))
        factor = factors[case].cell if case in factors else ""
        lines.append(CaseRow(case, step, speed, verdict.outcome, verdict, factor))
    return lines


def text(
    cases: Sequence[CaseRow], line: str, run: str | None, limit: int | None = None, advice: Sequence[str] = ()
) -> str:
    """The run as markdown of limited size: the verdict on the run, problems, conclusions, and every case."""
    ordered = sorted(cases, key=lambda row: (outcomes.place(row.outcome), row.case.slot))
    counts = Counter(row.outcome for row in ordered)
    summary = ", ".join(f"{counts[name]} {name}" for name in sorted(counts, key=outcomes.place))
    parts = [f"## ipexperf: {summary or 'no case was measured'}\n"]
    if line:
        parts.append(f"**{plain(line)}**\n")
    loud = [
        outcomes.row(row.outcome).fails or (row.verdict and (row.verdict.fails or row.verdict.moved)) for row in ordered
    ]
    parts += [f"- {_why(row)}\n" for row in itertools.compress(ordered, loud)]
    # Indented lines below a sentence become a nested list.
    parts += [f"{'  ' if sentence.startswith(' ') else ''}- {plain(sentence)}\n" for sentence in advice]
    for kind, columns in COLUMNS.items():
        of_kind = [row for row in ordered if isinstance(row.case, kind)]
        parts += _table([name for name in columns if name != FACTOR or any(row.factor for row in of_kind)], of_kind)
    end = f"\nRun `{run}`: `ipexperf show {run[:18]}` shows every number.\n" if run else ""
    return _cut(parts, end, limit)


def _cut(parts: Sequence[str], end: str, limit: int | None) -> str:
    """As many lines as there is room for, and how many are missing."""
    whole = "".join(parts) + end
    if limit is None or len(whole.encode()) <= limit:
        return whole
    kept = fitting(parts, limit - len(end.encode()) - 80)
    if not kept:
        return ""
    return "".join(kept) + f"\n{missing(parts, kept)}.\n" + end


def fitting(parts: Sequence[str], room: int) -> Sequence[str]:
    """The first of these parts, as many as so many bytes have room for."""
    sizes = itertools.accumulate(len(part.encode()) for part in parts)
    return parts[: sum(size <= room for size in sizes)]


def missing(parts: Sequence[str], kept: Sequence[str]) -> str:
    """How many parts were left out."""
    return f"{plural(len(parts) - len(kept), 'line')} left out for lack of space"


def _table(columns: Sequence[str], rows: Sequence[CaseRow]) -> list[str]:
    """A table of these rows. The columns are those with numbers between the case and the verdict."""
    if not rows:
        return []
    change = "vs baseline" if isinstance(rows[0].case, ProgramCase) else "time vs baseline"
    head = f"\n| | case | {' | '.join(columns)} | {change} | verdict |\n|---|---|{'--:|' * len(columns)}--:|---|\n"
    return [head, *(_line(columns, row) for row in rows)]


def _line(columns: Sequence[str], row: CaseRow) -> str:
    unit, higher = row.case.primary
    step = "-" if row.step is None else amount(row.step, unit)
    speed = "-" if row.throughput is None else digits(row.throughput)
    numbers = {"batch": str(row.case.inputs.get("batch")), row.case.step: step, "items/s": speed}
    texts = {**numbers, FACTOR: plain(row.factor) or "-"}
    cells = (outcomes.row(row.outcome).emoji, cell(row.case.name), *(texts[name] for name in columns))
    return f"| {' | '.join((*cells, of_time(row.verdict, higher=higher), row.outcome))} |\n"


def _why(row: CaseRow) -> str:
    texts = [sentence(row.verdict), *details(row.verdict)][:DETAILS] if row.verdict else []
    return f"{outcomes.row(row.outcome).emoji} {code(row.case.label)}: **{row.outcome}**: {plain('; '.join(texts))}"


def code(text: str) -> str:
    """A text of at most 1,000 signs as code in one line: no markup, mention or reference, and nothing is hidden."""
    line = re.sub(r"\s+", " ", text[:1000]).strip().replace("`", "'") or "-"
    return f"`{''.join(x if x.isprintable() else x.encode('unicode_escape').decode() for x in line)}`"


def cell(text: str) -> str:
    """The same in a table."""
    return code(text).replace("|", r"\|")


def plain(message: str) -> str:
    """A message in one line, with markup escaped."""
    line = re.sub(r"\s+", " ", message).strip()
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~#!])", r"\\\1", line)
