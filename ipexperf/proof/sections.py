"""Describe the differences in each section of two fingerprints."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ipexperf.proof import losses
from ipexperf.sentences import few

NAMED = 4
"""Most names in one line. The rest are counted."""
NOTHING, NONE = "nothing", "none"
LONGER = 1e-4
"""Equal rows whose times differ by fewer seconds are not reported."""
ACTIVATIONS = ("relu", "gelu", "silu", "swish", "sigmoid", "tanh", "hardtanh", "hardswish", "leaky_relu", "elu", "mish")
FACETS = ("implementation", "types", "fused", "layouts", "algorithm", "attributes", "direction")
"""The facets of a oneDNN primitive that can change, in the order of reports."""


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
VANISHED = {
    "torch_ipex::convolution_forward": "no packed convolution is left",
    "aten::batch_norm": "BatchNorm is folded",
}
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
"""Operators by their names."""
Name = TypeVar("Name", str, tuple[str, str])


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a fingerprint: what ran, and the seconds of each row."""

    rows: Any
    seconds: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class StructureChange:
    """One difference in words, how much longer it takes if that is known, and what shows it."""

    text: str
    seconds: float | None = None
    evidence: tuple[str, ...] = ()
    loss: str = ""
    """The kind of the loss if the change can only cost time, as `losses` names it."""
    work: bool = False
    """Whether the work itself is another, and not how it is done."""


@dataclass(frozen=True, slots=True)
class FacetChange:
    """The change of one facet: how many calls lost each value, how many got each, and the number of calls."""

    removed: Counter[str]
    added: Counter[str]
    total: int

    @classmethod
    def between(cls, before: Counter[str], after: Counter[str]) -> FacetChange:
        return cls(before - after, after - before, after.total())

    def __bool__(self) -> bool:
        return bool(self.removed or self.added)

    @property
    def replaced(self) -> bool:
        """Whether calls changed from one value to another, rather than being added or removed."""
        return bool(self.removed and self.added)

    def __str__(self) -> str:
        if len(self.removed) == len(self.added) == 1 and self.removed.total() == self.added.total():
            (source,), (target,) = self.removed, self.added
            return f"{source} -> {target} in {self.added.total()} of {self.total} calls"
        sides = (self.removed, self.added)
        texts = [", ".join(f"{word} x{count}" for word, count in side.most_common(NAMED)) for side in sides]
        return " -> ".join(words or NOTHING for words in texts)


def _longer(old: Section, new: Section, name: Callable[[Mapping[str, Any]], Name]) -> dict[Name, float]:
    """How much longer all rows of each name took. An operator's time is without the operators that it calls."""
    times: dict[Name, float] = defaultdict(float)
    for sign, side in ((-1, old), (1, new)):
        for row, seconds in zip(side.rows, side.seconds, strict=False):
            times[name(row)] += sign * seconds
    return times


def primitives(old: Section, new: Section) -> list[StructureChange]:
    """oneDNN: changed implementations, dtypes, layouts and fusions, and added or removed calls."""
    changes = []
    times = _longer(old, new, _kind)
    for name, direction in sorted({_kind(row) for row in (*old.rows, *new.rows)}):
        before, after = ([row for row in side.rows if _kind(row) == (name, direction)] for side in (old, new))
        if before == after:
            continue
        calls = tuple(sum(row["calls"] for row in rows) for rows in (before, after))
        label = f"{name} ({direction})" if direction else name
        parts = [] if calls[0] == calls[1] else [f"{calls[1] - calls[0]:+d} a step ({calls[0]} -> {calls[1]})"]
        # The layout of weights follows from the kernel that reads them.
        moves = {facet: _moved(before, after, facet) for facet in FACETS}
        replaced = [facet for facet in FACETS if moves[facet].replaced]
        images = _moved(before, after, "images")
        listed = [facet for facet in replaced if facet in FACETS[:3]] or ([] if images.replaced else replaced)
        parts += [f"{_label(facet)}{moves[facet]}" for facet in listed]
        # Report a changed layout of images beside a changed implementation too, because it may be the reason.
        parts += [f"images {images}"] if images.replaced else []
        also_told = FACETS[:1] + FACETS[3:4]
        evidence = [
            f"{facet}: {move}"
            for facet, move in moves.items()
            if facet not in listed and (move.replaced or (move and facet in also_told))
        ]
        text = "; ".join(parts) or "other shapes"
        seconds = times[name, direction]
        changes.append(StructureChange(f"{label}: {text}", seconds, tuple(evidence), _loss(name, moves)))
    return changes


def _loss(primitive: str, moves: Mapping[str, FacetChange]) -> str:
    """The kind of loss that these moves are, or an empty text. A wider dtype explains other kernels too."""
    kernel, types, fused = (moves[facet] for facet in ("implementation", "types", "fused"))
    wider = losses.dtypes(types.removed, types.added) if primitive in losses.COMPUTE else ""
    unfused = fused.replaced and set(fused.added) == {NONE}
    return wider or losses.implementation(kernel.removed, kernel.added) or (losses.UNFUSED if unfused else "")


def _kind(row: Mapping[str, Any]) -> tuple[str, str]:
    """A primitive and its direction. Both kinds of forward count as one."""
    direction = row.get("direction", "")
    return row.get("primitive", "rest"), "" if direction.startswith(("forward", "undef")) else direction


def _label(facet: str) -> str:
    return "" if facet in ("implementation", "types") else f"{facet} "


def _facet(row: Mapping[str, Any], facet: str) -> str:
    if facet == "images":
        words = [word.partition(":") for word in row.get("layouts", "").split()]
        return " ".join(dict.fromkeys(tag for role, _, tag in words if role in ("src", "diff_dst") and tag))
    value = str(row.get(facet, ""))
    if facet == "types":
        return " x ".join(dict.fromkeys(word.partition(":")[2] for word in value.split())) or NONE
    return value or NONE


def _moved(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], facet: str) -> FacetChange:
    sides: list[Counter[str]] = []
    for rows in (before, after):
        counts: Counter[str] = Counter()
        for row in rows:
            counts[_facet(row, facet)] += row["calls"]
        sides.append(counts)
    return FacetChange.between(*sides)


def graph(old: Section, new: Section) -> list[StructureChange]:
    """TorchScript: added and removed nodes, and what that means for fusions, weights and fallbacks."""
    before, after = (Counter({row["node"]: row["calls"] for row in side.rows}) for side in (old, new))
    if before == after:
        return []
    # Each sentence with the kind of loss that it is.
    texts = [*_fusions(before, after)]
    read = "prim::GetAttr"
    if after[read] and not before[read]:
        texts.append((f"graph no longer frozen: {after[read]} values read from modules", losses.UNFROZEN))
    elif before[read] and not after[read]:
        texts.append(("graph is frozen now", ""))
    packed = [sum(count for node, count in side.items() if "prepack" in node) for side in (before, after)]
    if bool(packed[0]) != bool(packed[1]):
        verb, loss = ("no longer has", losses.UNPACKED) if packed[0] else ("has now", "")
        texts.append((f"graph {verb} packed weights: {packed[0]} -> {packed[1]} nodes", loss))
    slow = "prim::FallbackGraph"
    if after[slow] > before[slow]:
        texts.append((f"+{after[slow] - before[slow]} fallbacks to unoptimised graphs", losses.FALLBACK))
    nodes = counted(before, after)
    return [StructureChange(text, None, (nodes,), loss) for text, loss in texts] or [StructureChange(f"graph: {nodes}")]


def _fusions(before: Counter[str], after: Counter[str]) -> list[tuple[str, str]]:
    """Activations that are fused now and were not, or the other way round, each with the kind of loss."""
    changes = []
    for name in ACTIVATIONS:
        alone = [sum(side[node] for node in (f"aten::{name}", f"aten::{name}_")) for side in (before, after)]
        fused = [
            sum(count for node, count in side.items() if not node.startswith("aten::") and f"_{name}" in node)
            for side in (before, after)
        ]
        if fused[0] > fused[1] and alone[1] > alone[0]:
            text = f"{name} no longer fused: {alone[1]} {name} alone ({fused[0]} -> {fused[1]} fused)"
            changes.append((text, losses.UNFUSED))
        elif fused[1] > fused[0] and alone[0] > alone[1]:
            changes.append((f"{name} fused now: {alone[0]} -> {alone[1]} {name} alone", ""))
    return changes


def counted(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Added and removed names, the most frequent first."""
    differences = {name: after.get(name, 0) - before.get(name, 0) for name in {*before, *after}}
    order = sorted(differences.items(), key=lambda entry: (-abs(entry[1]), entry[0]))
    return few([f"{difference:+d} {name}" for name, difference in order if difference], NAMED)


def kernels(old: Section, new: Section) -> list[StructureChange]:
    """Added and removed kernels of an accelerator."""
    before, after = (Counter({_kernel(row): row["calls"] for row in side.rows}) for side in (old, new))
    names = sorted(name for name in {*before, *after} if before[name] != after[name])
    times = _longer(old, new, _kernel)
    return [
        StructureChange(
            f"{after[name] - before[name]:+d} {name} a step ({before[name]} -> {after[name]})",
            times[name],
            loss=losses.kernel(name, more=after[name] > before[name]),
        )
        for name in names
    ]


def _kernel(row: Mapping[str, Any]) -> str:
    return str(row.get("kernel", "rest"))


def compiled(old: Section, new: Section) -> list[StructureChange]:
    """torch.compile: graphs, breaks, and what the generated code calls."""
    before, after = old.rows, new.rows
    # Each sentence with the kind of loss that it is.
    changes = [
        (f"{word} {before[word]} -> {after[word]}", "") for word in ("graphs", "frames") if before[word] != after[word]
    ]
    if before["breaks"] != after["breaks"]:
        broken = [sum(side["breaks"].values()) for side in (before, after)]
        why = next(iter(sorted({*after["breaks"]} - {*before["breaks"]})), "")
        text = f"graph breaks {broken[0]} -> {broken[1]}" + (f": {why[:80]}" if why else "")
        changes.append((text, losses.BROKEN if broken[1] > broken[0] else ""))
    if before["calls"] != after["calls"]:
        changes.append((f"generated code calls {counted(before['calls'], after['calls'])}", ""))
    return [StructureChange(f"torch.compile: {text}", loss=loss) for text, loss in changes]


def processor(old: Section, new: Section) -> list[StructureChange]:
    """Threads and instruction sets in effect."""
    words = {"threads": "threads", "aten": "ATen's instructions", "onednn": "oneDNN's instructions"}
    before, after = old.rows, new.rows
    weaker = {
        "aten": losses.weaker([before["aten"]], [after["aten"]], losses.ATEN),
        "onednn": losses.weaker(before["onednn"], after["onednn"], losses.ONEDNN),
    }
    changes = [
        StructureChange(f"{phrase}: {_listed(before[key])} -> {_listed(after[key])}", loss=weaker.get(key, ""))
        for key, phrase in words.items()
        if before[key] != after[key]
    ]
    names = sorted(
        name for name in {*before["limits"], *after["limits"]} if _limit(before, name) != _limit(after, name)
    )
    return [*changes, *(StructureChange(f"{name}: {_limit(before, name)} -> {_limit(after, name)}") for name in names)]


def _limit(side: Mapping[str, Any], name: str) -> str:
    return str(side["limits"].get(name, "not set"))


def _listed(value: Any) -> str:
    return ", ".join(value) or "unknown" if isinstance(value, list) else str(value)


def library(old: Section, new: Section) -> list[StructureChange]:
    """Primitives that oneDNN creates anew in each step, and unreadable lines of its log."""
    before, after = old.rows, new.rows
    changes = []
    if before["created"] != after["created"]:
        created = [
            sum(count for name, count in side["created"].items() if "hit" not in name) for side in (before, after)
        ]
        text = counted(before["created"], after["created"])
        again = (
            f"primitives made anew in a step {created[0]} -> {created[1]}: "
            if created[0] != created[1]
            else "asks its cache "
        )
        changes.append(StructureChange(f"oneDNN: {again}{text}", loss=losses.ANEW if created[1] > created[0] else ""))
    if before["unparsed"] != after["unparsed"]:
        changes.append(
            StructureChange(
                f"lines of oneDNN's log that could not be read: {before['unparsed']} -> {after['unparsed']}"
            )
        )
    return changes


def flops(old: Section, new: Section) -> list[StructureChange]:
    """The work itself: a changed network rather than changed software."""
    if old.rows == new.rows:
        return []
    return [
        StructureChange(f"other work: floating point operations of a step: {old.rows:,} -> {new.rows:,}", work=True)
    ]


def operators(old: Section, new: Section) -> list[StructureChange]:
    """Operators that appeared, disappeared, or changed dtypes or shapes, each with what it calls."""
    before, after = _by_name(old), _by_name(new)
    times = _longer(old, new, _operator)
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
            text += f": {VANISHED[name]}" if name in VANISHED and not calls[1] else ""
            text += _dtypes(before.get(name), after.get(name))
            seconds = sum(times[part] for part in (name, *more))
            loss = losses.operator(name, calls_before, calls_after)
            changes.append(StructureChange(text, seconds, (f"with {', '.join(more)}",) if more else (), loss))
        elif types := _types(before[name], after[name]):
            text = " -> ".join(" or ".join(sorted(side)) or NOTHING for side in (types.removed, types.added))
            retyped[text].append(name)
            if name in losses.COMPUTING and (loss := losses.dtypes(types.removed, types.added)):
                wider[text] = loss
        elif before[name].get("shapes") != after[name].get("shapes"):
            changes.append(StructureChange(f"{name}: other shapes in its {calls[1]} calls", times[name]))
        else:
            changes.append(StructureChange(f"{name}: called from elsewhere, as often as before", times[name]))
    for text, names in retyped.items():
        more = sorted({part for name in names for part in below[name]})
        named = few([f"{after[name]['calls']} {name}" for name in names], NAMED, rest="more operators")
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
    return {_operator(row): row for row in side.rows}


def _operator(row: Mapping[str, Any]) -> str:
    return str(row.get("operator", "rest"))


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


def _types(before: Mapping[str, Any], after: Mapping[str, Any]) -> FacetChange:
    """The combinations of dtypes that an operator is no longer called with, and the new ones."""
    sides: list[Counter[str]] = []
    for row in (before, after):
        counts: Counter[str] = Counter()
        for types, count in row.get("types", {}).items():
            counts[" x ".join(dict.fromkeys(types.split(", "))) or NOTHING] += count
        sides.append(counts)
    return FacetChange.between(*sides)


def same_but_time(old: Section, new: Section) -> Iterable[StructureChange]:
    """Rows that differ only in time."""
    if not isinstance(old.rows, list):
        return []
    by_shape: dict[str, list[float]] = defaultdict(list)
    for side in (old, new):
        for row, seconds in zip(side.rows, side.seconds, strict=False):
            by_shape[repr(row)].append(seconds)
    named = {repr(row): next(iter(row.values())) for row in new.rows}
    pairs = [(named[row], times[1] - times[0]) for row, times in by_shape.items() if len(times) == 2 and row in named]
    return [
        StructureChange(f"{name}: {seconds * 1e3:+.3g} ms a step, otherwise the same", seconds)
        for name, seconds in pairs
        if abs(seconds) > LONGER
    ]
