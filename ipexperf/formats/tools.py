"""The formats of other tools, by name: each is a function that reads files."""

from __future__ import annotations

import csv
import fnmatch
import json
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ipexperf.formats.number import File, Number, Reader, Told

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
MEDIAN = "median"


def pytest_benchmark(files: Sequence[File], what: str) -> Told:
    """The median of each test."""
    for bench in _members(files, "benchmarks", what):
        yield bench["fullname"], Number.time(bench["stats"][MEDIAN])


def google_benchmark(files: Sequence[File], what: str) -> Told:
    """The median real time of each benchmark over its repetitions."""
    runs: dict[str, list[tuple[bool, Number]]] = {}
    for bench in _members(files, "benchmarks", what):
        kind = bench.get("aggregate_name")
        if kind in (None, MEDIAN) and not bench.get("error_occurred") and "real_time" in bench:
            number = Number.time(bench["real_time"], bench.get("time_unit", "ns"))
            runs.setdefault(bench.get("run_name", bench["name"]), []).append((kind == MEDIAN, number))
    for name, numbers in runs.items():
        medians = [number.value for is_median, number in numbers if is_median]
        yield name, Number.time(statistics.median(medians or [number.value for _, number in numbers]))


def hyperfine(files: Sequence[File], what: str) -> Told:
    """The median of each command."""
    for result in _members(files, "results", what):
        yield result["command"], Number.time(result[MEDIAN])


def pytorch(files: Sequence[File], what: str) -> Told:
    """The median of each metric of PyTorch's OSS benchmark JSON (v3): a list of records, or one record a line."""
    for record in _records(files):
        of_model, bench, metric = record.get("model") or {}, record["benchmark"], record["metric"]
        if fnmatch.fnmatchcase(metric["name"], what or "*"):
            parts = (bench["name"], of_model.get("name"), bench.get("mode"), bench.get("dtype"), metric["name"])
            yield "/".join(str(part) for part in parts if part), Number(statistics.median(metric["benchmark_values"]))


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
    "csv": table,
    "dynamo": dynamo,
    "google-benchmark": google_benchmark,
    "hyperfine": hyperfine,
    "json": path,
    "pytest-benchmark": pytest_benchmark,
    "pytorch": pytorch,
    "re": pattern,
    "triton": table,
}
PRINTED = ("re",)
"""The formats of what a program prints, unless a file is named."""


def _members(files: Sequence[File], key: str, what: str) -> Iterator[dict[str, Any]]:
    """The members of the list under this key whose name matches, if there is a pattern."""
    for file in files:
        for member in json.loads(file.text)[key]:
            name = member.get("fullname") or member.get("name") or member.get("command")
            if fnmatch.fnmatchcase(str(name), what or "*"):
                yield member


def _records(files: Sequence[File]) -> Iterator[dict[str, Any]]:
    for file in files:
        try:
            document = json.loads(file.text)
        except ValueError:
            document = [json.loads(line) for line in file.text.splitlines() if line.strip()]
        yield from document if isinstance(document, list) else [document]


def _rows(files: Sequence[File]) -> Iterator[tuple[str, dict[str, str]]]:
    for file in files:
        for row in csv.DictReader(file.text.splitlines()):
            yield file.name, row


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
