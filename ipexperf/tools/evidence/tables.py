"""Make the tables of the documentation that show, machine by machine, what the files of evidence prove."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from ipexperf.errors import EvidenceError
from ipexperf.report.markdown import plain
from ipexperf.tools.evidence import features
from ipexperf.tools.evidence.features import Row
from ipexperf.tools.evidence.records import CaseRecord, Evidence, RowRecord

PAGES = (Path("docs") / "reference" / "features.md", Path("docs") / "reference" / "devices.md")
"""The pages with tables of evidence, from the root of a checkout."""
_BLOCK = re.compile(r"(<!-- evidence: (\w+) -->\n).*?(<!-- end of evidence -->)", re.DOTALL)
WORDS = {"held": "yes", "failed": "**failed**", "unreached": "not reached", "impossible": "-"}
"""The words of a table for the states of a row."""
NOBODY = "No machine yet.\n"


def blocks(evidence: Sequence[Evidence]) -> dict[str, str]:
    """Return the text of every block, by name."""
    if not evidence:
        return dict.fromkeys(_BLOCKS, NOBODY)
    return {name: make(evidence) for name, make in _BLOCKS.items()}


def filled(text: str, block_texts: Mapping[str, str], page: Path) -> str:
    """Fill a page with these blocks. Raise EvidenceError if the page has a block of another name."""

    def block(match: re.Match[str]) -> str:
        begin, name, end = match.groups()
        if name not in block_texts:
            raise EvidenceError(
                f"{page}: there is no table of evidence called {name}: choose from {', '.join(block_texts)}"
            )
        return f"{begin}\n{block_texts[name]}\n{end}"

    return _BLOCK.sub(block, text)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _head(evidence: Sequence[Evidence]) -> list[str]:
    return [plain(f"{machine.title} ({machine.device})") for machine in evidence]


def _states(machine: Evidence) -> dict[Row, RowRecord]:
    return {record.row: record for record in machine.rows}


def _rows(kind: str, evidence: Sequence[Evidence]) -> list[Row]:
    """Return the rows of a kind that any of these machines has, in the order of the registries."""
    ordered = [
        row for device in dict.fromkeys(machine.device for machine in evidence) for row in features.every(device)
    ]
    recorded = {record.row for machine in evidence for record in machine.rows}
    return [row for row in dict.fromkeys(ordered) if row.kind == kind and row in recorded]


def _by_stack(rows: Sequence[Row], machine: Evidence) -> str:
    """Return the cell for rows that differ in their stack: the stacks that hold, and the states of the others."""
    states, cases_by_uid = _states(machine), {record.case.uid: record for record in machine.cases}
    parts: dict[str, list[str]] = {name: [] for name in ("", "emulated", WORDS["failed"], WORDS["unreached"])}
    for row in rows:
        record = states.get(row)
        if record is not None and record.state != "impossible":
            parts[_word(record, cases_by_uid.get(record.case))].append(row.of("stack"))
    texts = [f"{word}{': ' if word else ''}{', '.join(stacks)}" for word, stacks in parts.items() if stacks]
    return "; ".join(texts) or "-"


def _word(record: RowRecord, case: CaseRecord | None) -> str:
    """Return the word before a stack's name: empty if its case held and the processor did not emulate it."""
    if record.state == "held":
        return "emulated" if case is not None and case.emulated else ""
    return WORDS[record.state]


def _grid(kind: str, names: tuple[str, str], evidence: Sequence[Evidence]) -> str:
    """Make a table of rows that have a stack: a line for each pair of these two values, a column for each machine."""
    lines: dict[tuple[str, str], list[Row]] = {}
    for row in _rows(kind, evidence):
        lines.setdefault((row.of(names[0]), row.of(names[1])), []).append(row)
    table, before = [], ""
    for (first, second), rows in lines.items():
        cells = [_by_stack(rows, machine) for machine in evidence]
        if set(cells) != {"-"}:
            table.append(["" if first == before else f"`{first}`", plain(second), *cells])
            before = first
    return _table([*names, *_head(evidence)], table)


def _list(kind: str, name: Callable[[Row], str], evidence: Sequence[Evidence]) -> str:
    """Make a table of rows without a stack."""
    table = []
    for row in _rows(kind, evidence):
        cells = [WORDS[record.state] if (record := _states(machine).get(row)) else "" for machine in evidence]
        table.append([name(row), *cells])
    return _table([kind, *_head(evidence)], table)


def _condition(row: Row) -> str:
    value = f"={row.of('value')}" if row.of("value") else ""
    return f"`--perf-{row.of('setting')} {row.of('name')}{value}`"


def _problems(evidence: Sequence[Evidence]) -> str:
    """List the rows that failed, each with its reason."""
    lines = [
        f"- {plain(machine.title)} ({machine.device}): {plain(str(record.row))}: {plain(record.why)}\n"
        for machine in evidence
        for record in machine.rows
        if record.state == "failed"
    ]
    return "".join(lines) or "Every row that was tried held.\n"


def _machines(evidence: Sequence[Evidence]) -> str:
    """Make the table of machines: a line for each file."""
    head = ("machine", "device", "software", "held", "did not", "not reached", "cannot show", "file")
    lines = []
    for machine in evidence:
        counts = [sum(record.state == state for record in machine.rows) for state in WORDS]
        names = ("python", "torch", "ipex", "torchao")
        software = ", ".join(f"{name} {machine.software[name]}" for name in names if machine.software.get(name))
        path = f"[{machine.made.get('at', 'file')}](../evidence/{machine.machine}.json)"
        lines.append([plain(machine.title), f"`{machine.device}`", plain(software), *map(str, counts), path])
    return _table(head, lines)


_BLOCKS: Mapping[str, Callable[[Sequence[Evidence]], str]] = {
    "machines": _machines,
    "instructions": partial(_list, "instructions", lambda row: f"{row.of('dtype')} by {row.of('instructions')}"),
    "modes": partial(_grid, "mode", ("mode", "dtype")),
    "knobs": partial(_grid, "knob", ("knob", "value")),
    "conditions": partial(_list, "condition", _condition),
    "failures": partial(_list, "failure", lambda row: f"`{row.of('outcome')}`"),
    "models": partial(_list, "model", lambda row: f"`{row.of('model')}`"),
    "problems": _problems,
}
