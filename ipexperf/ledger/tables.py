"""The tables of the documentation that are made of files of evidence: what was seen on which machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ipexperf.errors import EvidenceError
from ipexperf.ledger.records import CaseRecord, Evidence, RowRecord
from ipexperf.plan import features
from ipexperf.plan.features import Row
from ipexperf.report.markdown import plain

PAGES = (Path("docs") / "reference" / "features.md", Path("docs") / "reference" / "devices.md")
"""The pages with tables of evidence, from the root of a checkout."""
_BLOCK = re.compile(r"(<!-- evidence: (\w+) -->\n).*?(<!-- end of evidence -->)", re.DOTALL)
WORDS = {"held": "yes", "failed": "**failed**", "unreached": "not reached", "impossible": "-"}
"""The state of a row that has one case, in a table."""
NOBODY = "No machine yet.\n"


def blocks(seen: Sequence[Evidence]) -> dict[str, str]:
    """The text of every block, by name."""
    if not seen:
        return dict.fromkeys(_BLOCKS, NOBODY)
    return {name: make(seen) for name, make in _BLOCKS.items()}


def filled(text: str, made: Mapping[str, str], page: Path) -> str:
    """A page with these blocks in their places. A block that nobody makes raises EvidenceError."""

    def block(match: re.Match[str]) -> str:
        begin, name, end = match.groups()
        if name not in made:
            raise EvidenceError(f"{page}: there is no table of evidence called {name}: choose from {', '.join(made)}")
        return f"{begin}\n{made[name]}\n{end}"

    return _BLOCK.sub(block, text)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _head(seen: Sequence[Evidence]) -> list[str]:
    return [plain(f"{one.title} ({one.device})") for one in seen]


def _states(one: Evidence) -> dict[Row, RowRecord]:
    return {record.row: record for record in one.rows}


def _rows(kind: str, seen: Sequence[Evidence]) -> list[Row]:
    """The rows of a kind that any of these machines has, in the order of the registries."""
    ordered = [row for device in dict.fromkeys(one.device for one in seen) for row in features.every(device)]
    known = {record.row for one in seen for record in one.rows}
    return [row for row in dict.fromkeys(ordered) if row.kind == kind and row in known]


def _by_stack(rows: Sequence[Row], one: Evidence) -> str:
    """What became of the rows that differ in their stack: the stacks that held, and what became of the others."""
    states, cases = _states(one), {case.case.uid: case for case in one.cases}
    parts: dict[str, list[str]] = {name: [] for name in ("", "emulated", WORDS["failed"], WORDS["unreached"])}
    for row in rows:
        record = states.get(row)
        if record is not None and record.state != "impossible":
            parts[_word(record, cases.get(record.case))].append(row.of("stack"))
    texts = [f"{word}{': ' if word else ''}{', '.join(stacks)}" for word, stacks in parts.items() if stacks]
    return "; ".join(texts) or "-"


def _word(record: RowRecord, case: CaseRecord | None) -> str:
    """What is said of a stack before its name. Nothing, if its case held and the processor did not emulate it."""
    if record.state == "held":
        return "emulated" if case is not None and case.emulated else ""
    return WORDS[record.state]


def _grid(kind: str, names: tuple[str, str], seen: Sequence[Evidence]) -> str:
    """A table of rows that have a stack: a line for each pair of these two values, a column for each machine."""
    lines: dict[tuple[str, str], list[Row]] = {}
    for row in _rows(kind, seen):
        lines.setdefault((row.of(names[0]), row.of(names[1])), []).append(row)
    table, before = [], ""
    for (first, second), rows in lines.items():
        cells = [_by_stack(rows, one) for one in seen]
        if set(cells) != {"-"}:
            table.append(["" if first == before else f"`{first}`", plain(second), *cells])
            before = first
    return _table([*names, *_head(seen)], table)


def _list(kind: str, title: str, name: Callable[[Row], str], seen: Sequence[Evidence]) -> str:
    """A table of rows without a stack."""
    table = []
    for row in _rows(kind, seen):
        cells = [WORDS[record.state] if (record := _states(one).get(row)) else "" for one in seen]
        table.append([name(row), *cells])
    return _table([title, *_head(seen)], table)


def _modes(seen: Sequence[Evidence]) -> str:
    return _grid("mode", ("mode", "dtype"), seen)


def _knobs(seen: Sequence[Evidence]) -> str:
    return _grid("knob", ("knob", "value"), seen)


def _instructions(seen: Sequence[Evidence]) -> str:
    return _list("instructions", "instructions", lambda row: f"{row.of('dtype')} by {row.of('instructions')}", seen)


def _failures(seen: Sequence[Evidence]) -> str:
    return _list("failure", "failure", lambda row: f"`{row.of('outcome')}`", seen)


def _conditions(seen: Sequence[Evidence]) -> str:
    def name(row: Row) -> str:
        value = f"={row.of('value')}" if row.of("value") else ""
        return f"`--perf-{row.of('setting')} {row.of('name')}{value}`"

    return _list("condition", "condition", name, seen)


def _models(seen: Sequence[Evidence]) -> str:
    return _list("model", "model", lambda row: f"`{row.of('model')}`", seen)


def _problems(seen: Sequence[Evidence]) -> str:
    """The rows that did not hold, each with its reason."""
    lines = [
        f"- {plain(one.title)} ({one.device}): {plain(str(record.row))}: {plain(record.why)}\n"
        for one in seen
        for record in one.rows
        if record.state == "failed"
    ]
    return "".join(lines) or "Every row that was tried held.\n"


def _machines(seen: Sequence[Evidence]) -> str:
    """A line for each file."""
    head = ("machine", "device", "software", "held", "did not", "not reached", "cannot show", "file")
    lines = []
    for one in seen:
        counts = [sum(record.state == state for record in one.rows) for state in WORDS]
        names = ("python", "torch", "ipex", "torchao")
        software = ", ".join(f"{name} {one.software[name]}" for name in names if one.software.get(name))
        path = f"[{one.made.get('at', 'file')}](../evidence/{one.machine}.json)"
        lines.append([plain(one.title), f"`{one.device}`", plain(software), *map(str, counts), path])
    return _table(head, lines)


_BLOCKS: Mapping[str, Callable[[Sequence[Evidence]], str]] = {
    "machines": _machines,
    "instructions": _instructions,
    "modes": _modes,
    "knobs": _knobs,
    "conditions": _conditions,
    "failures": _failures,
    "models": _models,
    "problems": _problems,
}
