"""Compare the operators of two fingerprints. What an operator calls is reported with it, once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ipexperf.judge import losses
from ipexperf.judge.sections import NAMED, Section, StructureChange, counted

MEANING = {
    "aten::contiguous": "a copy, to lie contiguous",
    "aten::clone": "a copy",
    "aten::copy_": "a copy",
    "aten::to": "a cast or a copy",
    "aten::_to_copy": "a cast or a copy",
    "aten::batch_norm": "BatchNorm that is not folded",
    "aten::aminmax": "an observer that watches values",
    "aten::histc": "an observer that watches values",
    "aten::quantize_per_tensor": "a quantisation",
    "aten::dequantize": "a dequantisation",
}
"""What the appearance of an operator means."""
GONE = {"torch_ipex::convolution_forward": "no packed convolution is left", "aten::batch_norm": "BatchNorm is folded"}
"""What the disappearance of an operator means."""
PLUMBING = frozenset(
    f"aten::{name}"
    for name in (
        *(
            "empty",
            "empty_like",
            "empty_strided",
            "fill_",
            "resize_",
            "view",
            "_unsafe_view",
            "as_strided",
            "as_strided_",
        ),
        *("select", "expand", "t", "transpose", "detach", "resolve_conj"),
    )
)
"""Operators that allocate or view memory. If nothing else changed, they are reported together."""
Rows = Mapping[str, Mapping[str, Any]]


def operators(old: Section, new: Section) -> list[StructureChange]:
    """Operators that appeared, disappeared, or changed dtypes or shapes, each with what it calls."""
    before, after = _by_name(old), _by_name(new)
    times = _time(old, new)
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    roots = {name for name in changed if not _changed_only_in_callers(name, before, after, changed)}
    below = _below(roots, changed, before, after)
    # Operators that call one another have no outermost one: report each by itself.
    for name in changed - roots - set().union(*below.values()):
        roots.add(name)
        below[name] = set()
    changes = _plumbing(roots & PLUMBING, before, after, times)
    calls_before, calls_after = ({name: row["calls"] for name, row in rows.items()} for rows in (before, after))
    retyped: dict[str, list[str]] = defaultdict(list)
    wider: dict[str, str] = {}
    for name in sorted(roots - PLUMBING):
        calls = [rows.get(name, {}).get("calls", 0) for rows in (before, after)]
        if calls[0] != calls[1]:
            more = sorted(below[name])
            text = f"{calls[1] - calls[0]:+d} {name} a step ({calls[0]} -> {calls[1]})"
            text += f": {MEANING[name]}" if name in MEANING and calls[1] > calls[0] else ""
            text += f": {GONE[name]}" if name in GONE and not calls[1] else ""
            text += _dtypes(before.get(name), after.get(name))
            seconds = sum(times[part] for part in (name, *more))
            loss = losses.operator(name, calls_before, calls_after)
            changes.append(StructureChange(text, seconds, (f"with {', '.join(more)}",) if more else (), loss))
        elif types := _types(before[name], after[name]):
            retyped[str(types)].append(name)
            if name in losses.COMPUTING and (loss := losses.dtypes(types.removed, types.added)):
                wider[str(types)] = loss
        elif before[name].get("shapes") != after[name].get("shapes"):
            changes.append(StructureChange(f"{name}: other shapes in its {calls[1]} calls", times[name]))
        else:
            changes.append(StructureChange(f"{name}: called from elsewhere, as often as before", times[name]))
    for text, names in retyped.items():
        more = sorted({part for name in names for part in below[name]})
        named = ", ".join(f"{after[name]['calls']} {name}" for name in names[:NAMED])
        named += f" and {len(names) - NAMED} more operators" if len(names) > NAMED else ""
        seconds = sum(times[part] for part in (*names, *more))
        evidence = (f"with {', '.join(more)}",) if more else ()
        changes.append(StructureChange(f"{text} in {named}", seconds, evidence, wider.get(text, "")))
    return changes


def _plumbing(names: set[str], before: Rows, after: Rows, times: Mapping[str, float]) -> list[StructureChange]:
    if not names:
        return []
    sides = [{name: rows.get(name, {}).get("calls", 0) for name in names} for rows in (before, after)]
    text = counted(*sides) or f"other shapes in {', '.join(sorted(names)[:NAMED])}"
    return [StructureChange(f"views and allocations: {text}", sum(times[name] for name in names))]


def _dtypes(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """Dtypes that an operator lost or gained, if it runs in both."""
    if before is None or after is None:
        return ""
    sides = [{word for types in row["types"] for word in types.split(", ") if word} for row in (before, after)]
    lost, gained = sorted(sides[0] - sides[1]), sorted(sides[1] - sides[0])
    return (f", {' and '.join(lost)} no more" if lost else "") + (f", {' and '.join(gained)} now" if gained else "")


def _by_name(side: Section) -> Rows:
    return {row.get("operator", "rest"): row for row in side.rows}


def _time(old: Section, new: Section) -> Counter[str]:
    """How much longer each operator took, without the operators that it calls."""
    shares: Counter[str] = Counter()
    for sign, side in ((-1, old), (1, new)):
        for row, seconds in zip(side.rows, side.seconds, strict=False):
            shares[row.get("operator", "rest")] += sign * seconds  # type: ignore[assignment] # a counter of fractions
    return shares


def _inside(name: str, rows: Rows) -> Mapping[str, int]:
    inside: Mapping[str, int] = rows.get(name, {}).get("inside", {})
    return inside


def _callers(name: str, before: Rows, after: Rows) -> set[str]:
    """The callers that now call an operator more or less often, or all of its callers if no count changed."""
    sides = _inside(name, before), _inside(name, after)
    moved = {caller for caller in {*sides[0], *sides[1]} if sides[0].get(caller, 0) != sides[1].get(caller, 0)}
    return moved or {*sides[0], *sides[1]}


def _changed_only_in_callers(name: str, before: Rows, after: Rows, changed: set[str]) -> bool:
    """Whether an operator changed only inside other operators that changed."""
    callers = _callers(name, before, after) - {name}
    return bool(callers) and callers <= changed


def _below(roots: set[str], changed: set[str], before: Rows, after: Rows) -> dict[str, set[str]]:
    """The consequences of each root: changed operators whose callers lead up to it. Each is reported once."""
    names: dict[str, set[str]] = {root: set() for root in roots}
    for name in sorted(changed - roots):
        visited, edge = {name}, {name}
        while edge:
            edge = {caller for callee in edge for caller in _callers(callee, before, after)} - visited
            visited |= edge
            if tops := sorted(edge & roots):
                names[tops[0]].add(name)
                break
    return names


@dataclass(frozen=True, slots=True)
class Types:
    """The combinations of dtypes that an operator is no longer called with, and the new ones."""

    removed: Counter[str]
    added: Counter[str]

    def __bool__(self) -> bool:
        return bool(self.removed or self.added)

    def __str__(self) -> str:
        return " -> ".join(" or ".join(side) or "nothing" for side in (sorted(self.removed), sorted(self.added)))


def _types(before: Mapping[str, Any], after: Mapping[str, Any]) -> Types:
    sides = []
    for row in (before, after):
        counts: Counter[str] = Counter()
        for types, count in row.get("types", {}).items():
            counts[" x ".join(dict.fromkeys(types.split(", "))) or "nothing"] += count
        sides.append(counts)
    return Types(sides[0] - sides[1], sides[1] - sides[0])
