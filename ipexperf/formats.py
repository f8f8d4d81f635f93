"""The numbers that programs tell of themselves, by `--metrics`, and the formats that they are in."""

from __future__ import annotations

import csv
import fnmatch
import functools
import json
import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from ipexperf.errors import UsageError
from ipexperf.history import formats as tools

DIRECTIONS = {"lower": False, "higher": True}
OUT = "{out}"
"""In a program's words, the place that it is to write its numbers to."""
LARGEST = 2**26
"""Most bytes of a file, or of what a program prints, that are read."""


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


@dataclass(frozen=True, slots=True)
class Metrics:
    """A value of `--metrics`: '[lower:|higher:]FORMAT[@FILE][:WHAT]'."""

    text: str
    format: str
    file: str = ""
    what: str = ""
    higher: bool | None = None

    @classmethod
    def parse(cls, text: str, words: Sequence[str]) -> Metrics:
        """Parse a value for a program of these words."""
        direction, colon, rest = text.partition(":")
        higher = DIRECTIONS.get(direction) if colon else None
        head, _, what = (text if higher is None else rest).partition(":")
        name, _, file = head.partition("@")
        if name not in FORMATS:
            raise UsageError(
                f"--metrics '{text}': expected [lower:|higher:]FORMAT[@FILE][:WHAT] with one of the formats "
                f"{', '.join(FORMATS)}"
            )
        has_out = any(OUT in word for word in words)
        return cls(text, name, file or (OUT if has_out and name not in PRINTED else ""), what, higher)

    def read(self, out: Path, folder: Path, printed: str) -> dict[str, Number]:
        """The numbers of a run that was told to write to `out`, ran in `folder` and printed this.

        Raises ValueError with a sentence.
        """
        try:
            numbers: dict[str, Number] = {}
            for name, number in FORMATS[self.format](self._files(out, folder, printed), self.what):
                self._check(name, number, numbers)
                numbers[name] = number if number.higher is not None else replace(number, higher=self.higher)
        except (KeyError, TypeError, AttributeError, IndexError, csv.Error, StopIteration) as error:
            raise ValueError(
                f"--metrics {self.text}: {self._where()} is not of this format: {type(error).__name__}: {error}"
            ) from None
        except json.JSONDecodeError as error:
            raise ValueError(f"--metrics {self.text}: {self._where()} is no whole JSON: {error}") from None
        except (OSError, ValueError, UsageError) as error:
            raise ValueError(f"--metrics {self.text}: {error}") from None
        if not numbers:
            raise ValueError(f"--metrics {self.text}: it told no number in {self._where()}")
        return numbers

    def _check(self, name: str, number: Number, others: Mapping[str, Number]) -> None:
        if name in others:
            raise ValueError(f"two numbers are called '{name}'")
        if number.higher is None and self.higher is None:
            either = " or ".join(f"{direction}:{self.text}" for direction in DIRECTIONS)
            raise ValueError(f"nothing says whether more of '{name}' is better: write {either}")

    def _where(self) -> str:
        return self.file or "what it prints"

    def _files(self, out: Path, folder: Path, printed: str) -> list[File]:
        if not self.file:
            (path := out.with_name("printed")).write_text(printed, encoding="utf-8")
            return [File(path, printed)]
        path = folder / self.file.replace(OUT, str(out))
        paths = sorted(path.glob("*.csv")) or sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not paths or not paths[0].exists():
            raise ValueError(f"it wrote no {self.file}")
        if large := next((file for file in paths if file.stat().st_size > LARGEST), None):
            raise ValueError(f"{large.name} has more than {LARGEST // 2**20} MiB")
        return [File(file, file.read_text(encoding="utf-8", errors="replace")) for file in paths]


def all_of(wanted: Sequence[Metrics], out: Path, folder: Path, printed: str) -> Mapping[str, Number]:
    """The numbers that all of these find. Raises ValueError if two have one name."""
    numbers: dict[str, Number] = {}
    for metrics in wanted:
        told = metrics.read(out, folder, printed)
        if twice := next((name for name in told if name in numbers), None):
            raise ValueError(f"--metrics {metrics.text}: another --metrics has a '{twice}' too")
        numbers |= told
    return numbers


def unusable(number: Number | None) -> str:
    """Why a number has no ratio, or an empty text."""
    if number is None:
        return "is not told"
    return "" if 0 < number.value < math.inf else f"is {number.value:g}, not above 0"
