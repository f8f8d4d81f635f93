"""Numbers that programs tell, and the formats that they are in, by name: each is a function that reads files."""

from __future__ import annotations

import csv
import fnmatch
import functools
import json
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ipexperf.history import formats as tools


@dataclass(frozen=True, slots=True)
class Number:
    """A value with its unit, and whether more of it is better: None where its format does not say that."""

    value: float
    unit: str = ""
    higher: bool | None = None


@dataclass(frozen=True, slots=True)
class File:
    """A file that a program wrote, or what it printed."""

    path: Path
    text: str


Told: TypeAlias = Iterator[tuple[str, Number]]
"""Numbers with their names. It raises ValueError with a sentence, or what reading another file's content raises."""
Reader: TypeAlias = Callable[[Sequence[File], str], Told]
"""Reads the numbers of files. The text says which, in a way of the format's own; it may be empty."""

DYNAMO_KEYS = ("dev", "name", "batch_size")
DYNAMO = {
    "speedup": ("x", True),
    "abs_latency": ("ms", False),
    "compilation_latency": ("s", False),
    "compression_ratio": ("x", True),
    "eager_peak_mem": ("GB", False),
    "dynamo_peak_mem": ("GB", False),
}
"""The columns of PyTorch's dynamo benchmarks that are results, each with its unit and whether more is better."""


def of_tool(expected: str, files: Sequence[File], what: str) -> Told:
    """The median of each result in a JSON file of this tool, whose name matches if there is a pattern."""
    for file in files:
        name, runs = tools.read(file.path)
        if name != expected:
            raise ValueError(f"it is a file of {name}")
        for run in runs:
            for result in filter(None, run.results):
                if fnmatch.fnmatchcase(result.name, what or "*"):
                    value, scale = statistics.median(result.values), tools.SECONDS.get(result.unit)
                    unit = "s" if scale else result.unit
                    yield result.name, Number(value * (scale or 1.0), unit, result.higher_is_better)


def dynamo(files: Sequence[File], what: str) -> Told:
    """The results of each model in a CSV file of PyTorch's dynamo benchmarks."""
    for _, row in _rows(files):
        for column, (unit, higher) in DYNAMO.items():
            if row.get(column) and fnmatch.fnmatchcase(column, what or "*"):
                yield _named(row, DYNAMO_KEYS, column), Number(float(row[column]), unit, higher)


def table(files: Sequence[File], what: str) -> Told:
    """Columns of CSV files: 'KEY+KEY,VALUE,VALUE'. Without keys the first one is the key, and all others are values.

    What Triton's `perf_report` saves is such a table for each of its plots.
    """
    first, *wanted = what.split(",")
    for name, row in _rows(files):
        keys = first.split("+") if first else [next(iter(row))]
        columns = wanted or [column for column in row if column not in keys]
        if lost := [column for column in (*keys, *columns) if column not in row]:
            raise ValueError(f"there is no column '{lost[0]}': there are {', '.join(row)}")
        for column in columns:
            of_file = f"{name}/" if len(files) > 1 else ""
            yield f"{of_file}{_named(row, keys, column)}", Number(float(row[column] or "nan"))


def path(files: Sequence[File], what: str) -> Told:
    """The numbers at a path into a JSON file: keys and indices with dots between them.

    `*` is each of them, and `[KEY]` each member of a list, by what its KEY says. What is no number does not count.
    """
    steps = what.split(".")
    several = any(step == "*" or step.startswith("[") for step in steps)
    for file in files:
        for name, value in _at(json.loads(file.text), steps, ()):
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield name, Number(float(value))
            elif not several:
                raise ValueError(f"'{name}' is no number: {value!r}")


def pattern(files: Sequence[File], what: str) -> Told:
    """What a regular expression finds: its group `value` or its first other one than `name`, which names it."""
    try:
        wanted = re.compile(what, re.MULTILINE)
    except re.error as error:
        raise ValueError(f"'{what}' is no regular expression: {error}") from None
    of_name = wanted.groupindex.get("name", 0)
    others = [number for number in range(1, wanted.groups + 1) if number != of_name]
    of_value = wanted.groupindex.get("value", others[0] if others else 0)
    if not of_value:
        raise ValueError(f"'{what}' has no group: put what is the number in parentheses")
    for file in files:
        for match in wanted.finditer(file.text):
            yield (
                match[of_name] if of_name else "value",
                Number(float(match[of_value])),
            )


FORMATS: Mapping[str, Reader] = {
    **{tool.name: functools.partial(of_tool, tool.name) for tool in tools.FORMATS},
    "csv": table,
    "dynamo": dynamo,
    "json": path,
    "re": pattern,
    "triton": table,
}
PRINTED = ("re",)
"""The formats of what a program prints, unless a file is named."""


def _rows(files: Sequence[File]) -> Iterator[tuple[str, dict[str, str]]]:
    for file in files:
        for row in csv.DictReader(file.text.splitlines()):
            yield file.path.stem, row


def _named(row: Mapping[str, str], keys: Sequence[str], column: str) -> str:
    return "/".join([*(row[key] for key in keys if row.get(key)), column])


def _at(document: Any, steps: Sequence[str], before: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """What is below a part of a document that was reached by the steps before."""
    if not steps:
        yield ".".join(before), document
        return
    step, *rest = steps
    for name, member in _inside(document, step, before):
        yield from _at(member, rest, (*before, name))


def _inside(document: Any, step: str, before: tuple[str, ...]) -> list[tuple[str, Any]]:
    """The members that a step leads to, with their names."""
    if step.startswith("[") and step.endswith("]") and isinstance(document, list):
        return [(str(member[step[1:-1]]), member) for member in document]
    pairs: Any = enumerate(document) if isinstance(document, list) else getattr(document, "items", list)()
    named = [(str(name), member) for name, member in pairs]
    found = [(name, member) for name, member in named if step in ("*", name)]
    if not found:
        raise ValueError(f"there is no '{'.'.join((*before, step))}'")
    return found
