"""What torch's profiler saw of a step, in rows: operators with dtypes, shapes and callers, kernels by name."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ipexperf.bench.proof import PROFILER_NAMES

KEPT = 3
"""So many different shapes of an operator are kept as they are; more of them are folded into a digest."""
ROWS = 400
"""So many rows a section has; the rest of a stranger's network is folded into one, so that the record stays small."""
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
"""Categories of what ran on an accelerator."""
_OPERATOR = "cpu_op"
_MEMORY = "[memory]"
_OWN = ("profiler::", "autograd::engine::evaluate_function", "## ")
"""What the profiler and autograd write about themselves: the operators inside say the same."""
_HASH = re.compile(r"[0-9a-f]{12,}|(?<=Region: )[\d/]+")

Section = tuple[list[dict[str, Any]], list[float]]
"""Rows of structure, and the seconds of each."""


@dataclass(slots=True)
class _Operator:
    calls: int = 0
    seconds: float = 0.0
    types: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)
    inside: Counter[str] = field(default_factory=Counter)


def operators(events: Iterable[dict[str, Any]]) -> Section:
    """Every operator by its name: how often, of which dtypes and shapes, inside which others, and its own time."""
    found: dict[str, _Operator] = defaultdict(_Operator)
    for event, caller, own in _nested(events):
        one, told = found[_named(event)], event.get("args", {})
        one.calls += 1
        one.seconds += own
        one.types[_types(told)] += 1
        one.shapes["; ".join("x".join(map(str, dims)) for dims in _dims(told))] += 1
        one.inside[caller] += 1
    rows = [
        {
            "operator": name,
            "calls": one.calls,
            "types": _sorted(one.types),
            "shapes": folded(one.shapes),
            "inside": _sorted(one.inside),
        }
        for name, one in found.items()
    ]
    return limited(rows, [one.seconds for one in found.values()])


def kernels(events: Iterable[dict[str, Any]]) -> Section:
    """Every kernel of an accelerator by its name, without what differs from build to build."""
    calls: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for event in events:
        if event.get("cat") in DEVICE:
            name = plain(str(event["name"]))
            calls[name] += 1
            seconds[name] += event.get("dur", 0) / 1e6
    rows = [{"kernel": name, "calls": count} for name, count in calls.items()]
    return limited(rows, [seconds[name] for name in calls])


def memory(events: Iterable[dict[str, Any]], *, accelerator: bool) -> dict[str, int]:
    """What a step took of torch's allocator: how often, how much in all, and the most at once beyond its beginning."""
    marks = [x for x in events if x.get("name") == _MEMORY and bool(x["args"]["Device Type"]) == accelerator]
    changes = [int(mark["args"]["Bytes"]) for mark in sorted(marks, key=lambda x: (x["ts"], x["args"]["Ev Idx"]))]
    taken = [change for change in changes if change > 0]
    return {"allocations": len(taken), "allocated": sum(taken), "peak": max((0, *itertools.accumulate(changes)))}


def plain(kernel: str) -> str:
    """A kernel's name without its return type, arguments, template arguments and hashes."""
    kernel, depth, kept = kernel.replace("(anonymous namespace)", "anonymous").replace("->", ""), 0, []
    for letter in kernel:
        depth += letter in "<("
        if not depth:
            kept.append(letter)
        depth -= letter in ">)"
    words = "".join(kept).split()
    name = words[-1] if words and words[0] == "void" else " ".join(words)
    return _HASH.sub("#", name)


def _nested(events: Iterable[dict[str, Any]]) -> list[tuple[dict[str, Any], str, float]]:
    """Each operator with the name of the one that called it and the seconds that it took itself."""
    chosen = [x for x in events if x.get("cat") == _OPERATOR and not str(x.get("name")).startswith(_OWN)]
    # At equal moments the outer one is the longer one, or the one that the profiler met first.
    chosen.sort(key=lambda x: (str(x.get("tid")), x["ts"], -x["dur"], x.get("args", {}).get("Ev Idx", 0)))
    callers, own = [""] * len(chosen), [x["dur"] / 1e6 for x in chosen]
    open_ones: list[int] = []
    for number, event in enumerate(chosen):
        while open_ones and not _within(event, chosen[open_ones[-1]]):
            open_ones.pop()
        if open_ones:
            callers[number] = _named(chosen[open_ones[-1]])
            own[open_ones[-1]] -= event["dur"] / 1e6
        open_ones.append(number)
    return [(event, callers[number], max(0.0, own[number])) for number, event in enumerate(chosen)]


def _within(event: dict[str, Any], outer: dict[str, Any]) -> bool:
    return event.get("tid") == outer.get("tid") and bool(event["ts"] < outer["ts"] + outer["dur"])


def _named(event: dict[str, Any]) -> str:
    return _HASH.sub("#", str(event["name"]))


def _types(told: dict[str, Any]) -> str:
    """The dtypes of the tensors that an operator was given; a list of tensors has those of its own."""
    names = [PROFILER_NAMES.get(name, name) for name in map(str, told.get("Input type", ()))]
    return ", ".join(name for name in names if name and not name.startswith(("Scalar", "GenericList")))


def _dims(told: dict[str, Any]) -> list[list[Any]]:
    return [dims for dims in told.get("Input Dims", ()) if dims]


def folded(shapes: Counter[str]) -> dict[str, int] | str:
    """A few shapes as they are, many as a digest: whether they are the same is what is asked of them."""
    if len(shapes) <= KEPT:
        return _sorted(shapes)
    told = "\n".join(f"{shape} {count}" for shape, count in sorted(shapes.items()))
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def limited(rows: list[dict[str, Any]], seconds: list[float]) -> Section:
    """The rows in an order of their own, with all beyond the limit as one."""
    order = sorted(range(len(rows)), key=lambda number: _text(rows[number]))
    kept, rest = order[:ROWS], order[ROWS:]
    found = [rows[number] for number in kept]
    times = [seconds[number] for number in kept]
    if rest:
        digest = hashlib.sha256("\n".join(_text(rows[number]) for number in rest).encode()).hexdigest()[:12]
        found.append({"rest": len(rest), "calls": sum(rows[number]["calls"] for number in rest), "digest": digest})
        times.append(sum(seconds[number] for number in rest))
    return found, times


def _text(row: dict[str, Any]) -> str:
    return repr(sorted(row.items(), key=lambda part: part[0]))


def _sorted(found: Counter[str]) -> dict[str, int]:
    return dict(sorted(found.items()))
