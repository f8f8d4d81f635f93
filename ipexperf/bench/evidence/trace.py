"""Tables from torch's profiler: operators with dtypes, shapes and callers, and kernels by name."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ipexperf.bench.evidence.proof import PROFILER_NAMES

KEPT = 3
"""Number of different shapes of an operator to list. More are replaced by a digest."""
ROWS = 400
"""Limit of rows in a section. The rest is folded into one row, so that records stay small."""
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
"""Categories of events on an accelerator."""
_OPERATOR = "cpu_op"
MEMORY = "[memory]"
OWN = ("profiler::", "autograd::engine::evaluate_function", "## ")
"""Events of the profiler and autograd themselves, which repeat the operators inside."""
_HASH = re.compile(r"[0-9a-f]{12,}|(?<=Region: )[\d/]+")

Section = tuple[list[dict[str, Any]], list[float]]
"""Rows of the structure, and the seconds of each."""


@dataclass(slots=True)
class _Operator:
    calls: int = 0
    seconds: float = 0.0
    types: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)
    inside: Counter[str] = field(default_factory=Counter)


def operators(events: Iterable[dict[str, Any]]) -> Section:
    """Return every operator with its number of calls, dtypes, shapes, callers and own time."""
    by_id: dict[str, _Operator] = defaultdict(_Operator)
    for event, caller, seconds in _nested(events):
        operator, arguments = by_id[_named(event)], event.get("args", {})
        operator.calls += 1
        operator.seconds += seconds
        operator.types[_types(arguments)] += 1
        operator.shapes["; ".join("x".join(map(str, dims)) for dims in _dims(arguments))] += 1
        operator.inside[caller] += 1
    rows = [
        {
            "operator": name,
            "calls": operator.calls,
            "types": _sorted(operator.types),
            "shapes": folded(operator.shapes),
            "inside": _sorted(operator.inside),
        }
        for name, operator in by_id.items()
    ]
    return limited(rows, [operator.seconds for operator in by_id.values()])


def kernels(events: Iterable[dict[str, Any]]) -> Section:
    """Return every kernel of an accelerator by name, without the parts of the name that differ between builds."""
    calls: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for event in events:
        if event.get("cat") in DEVICE:
            name = plain(str(event["name"]))
            calls[name] += 1
            seconds[name] += event.get("dur", 0) / 1e6
    rows = [{"kernel": name, "calls": count} for name, count in calls.items()]
    return limited(rows, [seconds[name] for name in calls])


def counts(events: Iterable[dict[str, Any]], *, kernels: bool) -> dict[str, int]:
    """Return how many operators a step called, and how many kernels ran if they were recorded."""
    kinds = Counter(event.get("cat") for event in events if not str(event.get("name")).startswith(OWN))
    ran = {"kernels": sum(kinds[kind] for kind in DEVICE)} if kernels else {}
    return {"operators": kinds[_OPERATOR], **ran}


def memory(events: Iterable[dict[str, Any]], *, accelerator: bool) -> dict[str, int]:
    """Return the allocations of a step: number, total bytes, and peak above the level at its beginning.

    Nothing where an accelerator shows none: its allocator may not tell the profiler.
    """
    marks = [x for x in events if x.get("name") == MEMORY and bool(x["args"]["Device Type"]) == accelerator]
    if accelerator and not marks:
        return {}
    changes = [int(mark["args"]["Bytes"]) for mark in sorted(marks, key=lambda x: (x["ts"], x["args"]["Ev Idx"]))]
    allocations = [change for change in changes if change > 0]
    return {
        "allocations": len(allocations),
        "allocated": sum(allocations),
        "peak": max((0, *itertools.accumulate(changes))),
    }


def plain(kernel: str) -> str:
    """Remove return type, arguments, template arguments and hashes from a kernel's name."""
    kernel, depth, letters = kernel.replace("(anonymous namespace)", "anonymous").replace("->", ""), 0, []
    for letter in kernel:
        depth += letter in "<("
        if not depth:
            letters.append(letter)
        depth -= letter in ">)"
    words = "".join(letters).split()
    name = words[-1] if words and words[0] == "void" else " ".join(words)
    return _HASH.sub("#", name)


def _nested(events: Iterable[dict[str, Any]]) -> list[tuple[dict[str, Any], str, float]]:
    """Yield each operator with the name of its caller and its own seconds."""
    chosen = [x for x in events if x.get("cat") == _OPERATOR and not str(x.get("name")).startswith(OWN)]
    # At equal times the outer one is the longer one, or the one that was recorded first.
    chosen.sort(key=lambda x: (str(x.get("tid")), x["ts"], -x["dur"], x.get("args", {}).get("Ev Idx", 0)))
    callers, seconds = [""] * len(chosen), [x["dur"] / 1e6 for x in chosen]
    open_ones: list[int] = []
    for number, event in enumerate(chosen):
        while open_ones and not _within(event, chosen[open_ones[-1]]):
            open_ones.pop()
        if open_ones:
            callers[number] = _named(chosen[open_ones[-1]])
            seconds[open_ones[-1]] -= event["dur"] / 1e6
        open_ones.append(number)
    return [(event, callers[number], max(0.0, seconds[number])) for number, event in enumerate(chosen)]


def _within(event: dict[str, Any], outer: dict[str, Any]) -> bool:
    return event.get("tid") == outer.get("tid") and bool(event["ts"] < outer["ts"] + outer["dur"])


def _named(event: dict[str, Any]) -> str:
    return _HASH.sub("#", str(event["name"]))


def _types(arguments: dict[str, Any]) -> str:
    """Return the dtypes of an operator's tensor arguments, including those in lists."""
    names = [PROFILER_NAMES.get(name, name) for name in map(str, arguments.get("Input type", ()))]
    return ", ".join(name for name in names if name and not name.startswith(("Scalar", "GenericList")))


def _dims(arguments: dict[str, Any]) -> list[list[Any]]:
    return [dims for dims in arguments.get("Input Dims", ()) if dims]


def folded(shapes: Counter[str]) -> dict[str, int] | str:
    """List a few shapes, or return a digest of many, which is enough to compare them."""
    if len(shapes) <= KEPT:
        return _sorted(shapes)
    text = "\n".join(f"{shape} {count}" for shape, count in sorted(shapes.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def limited(rows: list[dict[str, Any]], seconds: list[float]) -> Section:
    """Return the rows in canonical order. All beyond the limit are folded into one."""
    order = sorted(range(len(rows)), key=lambda number: _text(rows[number]))
    listed, rest = order[:ROWS], order[ROWS:]
    others = [rows[number] for number in listed]
    times = [seconds[number] for number in listed]
    if rest:
        digest = hashlib.sha256("\n".join(_text(rows[number]) for number in rest).encode()).hexdigest()[:12]
        others.append({"rest": len(rest), "calls": sum(rows[number]["calls"] for number in rest), "digest": digest})
        times.append(sum(seconds[number] for number in rest))
    return others, times


def _text(row: dict[str, Any]) -> str:
    return repr(sorted(row.items(), key=lambda part: part[0]))


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
