"""What ran differently, without noise: two fingerprints held against each other. Pure functions on plain records.

The words of each section are in `judge.sections`; here they become one list, by their share of the time difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ipexperf.judge import sections
from ipexperf.judge.operators import operators
from ipexperf.judge.sections import Change, Side
from ipexperf.result import Structure

Fingerprint = Mapping[str, Any]
WORDS = {
    "primitives": sections.primitives,
    "operators": operators,
    "kernels": sections.kernels,
    "graph": sections.graph,
    "compiled": sections.compiled,
    "library": sections.library,
    "processor": sections.processor,
    "flops": sections.flops,
}
"""What tells each section's differences. What accounts for the same time is told in this order."""
SHOWN = 3
"""So many rows that differ in time alone are told."""
MIB = 2**20
SURE = 0.02
"""A difference of the steps' time below this fraction is nothing that shares could be told of."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two fingerprints: in structure, and apart from that in time alone."""

    changes: tuple[Change, ...]
    slower: tuple[Change, ...]
    """What ran just the same and took longer, or less long."""
    unknown: tuple[str, ...]
    """Sections that one of the two does not have, or that were not the same twice."""
    total: float | None
    """Seconds that the captured step took longer, under the profiler; None where no shares can be told of it."""

    def share(self, change: Change) -> float | None:
        """The part of the time difference that a change accounts for."""
        if self.total is None or change.seconds is None:
            return None
        return change.seconds / self.total

    def lines(self) -> list[str]:
        """Each change in words, with its share where it has one."""
        return [told(change.text, self.share(change)) for change in self.changes]


def told(text: str, share: float | None) -> str:
    """A change with its share of the time difference; one that goes the other way has none to tell."""
    return text if share is None or share < 0.005 else f"{text}; {min(share, 1):.0%} of the time difference"


def name(found: Fingerprint | None) -> str | None:
    """What a baseline keeps of a fingerprint: its version and digest; None where it is not whole, or not stable."""
    return f"{found['version']}:{found['digest']}" if found and found["digest"] else None


def of(found: Sequence[Fingerprint | None]) -> tuple[Structure, Fingerprint | None]:
    """The one fingerprint of a case's launches; or why there is none: it is `unstable`, or `unknown`."""
    known = [one for one in found if one]
    if not known:
        return Structure("unknown", "nothing was captured"), None
    shaky = sorted({section for one in known for section in one["unstable"]})
    if shaky:
        return Structure("unstable", f"{', '.join(shaky)} differed between two steps of one process"), known[0]
    missing = {section: why for one in known for section, why in one["missing"].items()}
    if missing:
        told = "; ".join(f"{section}: {why}" for section, why in sorted(missing.items()))
        return Structure("unknown", f"not all could be captured: {told}"), known[0]
    other = next((one for one in known if one["digest"] != known[0]["digest"]), None)
    if other is not None:
        lines = diff(known[0], other).lines() if "structure" in known[0] and "structure" in other else []
        return Structure("unstable", "the launches of one run differ", tuple(lines)), known[0]
    return Structure("same"), known[0]


def judge(
    launches: Sequence[Fingerprint | None],
    baseline: str | None,
    before: Callable[[], Fingerprint | None],
    *,
    gate: bool = False,
) -> Structure:
    """Holds a case's launches against the digest that was accepted; `before` finds what that stands for.

    With `gate` a changed structure fails the test. One that is not stable, or not known, never does.
    """
    state, found = of(launches)
    if state.outcome != "same" or found is None:
        return state
    if baseline is None:
        return Structure("unknown", "the baseline has no fingerprint")
    if baseline == name(found):
        return Structure("same")
    if baseline.partition(":")[0] != str(found["version"]):
        return Structure("unknown", "the baseline's fingerprint is of another version: accept a new one")
    old = before()
    if old is None:
        reason = "the digest is not the baseline's, and this history does not have the run that was accepted"
        return Structure("changed", reason, fails=gate)
    return Structure("changed", "the digest is not the baseline's", tuple(diff(old, found).lines()), fails=gate)


def between(other: Fingerprint | None, own: Fingerprint | None) -> Structure:
    """Holds one arm of a pair against the other. That they differ is no alarm: they may have been made to."""
    for word, one in (("the other arm: ", other), ("", own)):
        state, _ = of([one])
        if state.outcome != "same":
            return replace(state, reason=word + state.reason)
    if other is None or own is None or other["version"] != own["version"]:
        return Structure("unknown", "the arms' fingerprints are of different versions")
    if other["digest"] == own["digest"]:
        return Structure("same")
    return Structure("changed", "the two arms run otherwise", tuple(diff(other, own).lines()))


def memory(old: Fingerprint, new: Fingerprint) -> str:
    """How the allocations of a step differ, which no digest has, or an empty text."""
    before, after = (one.get("beside", {}).get("memory") for one in (old, new))
    if before is None or after is None or before == after:
        return ""
    sizes = [f"{before[name] / MIB:.3g} -> {after[name] / MIB:.3g} MiB" for name in ("allocated", "peak")]
    return f"{before['allocations']} -> {after['allocations']} allocations, {sizes[0]} in all, {sizes[1]} at once"


def diff(old: Fingerprint, new: Fingerprint) -> Difference:
    """All that differs, the changes with the largest share of the time difference first."""
    known = [name for name in WORDS if name in old["structure"] and name in new["structure"]]
    shaky = {*old["unstable"], *new["unstable"]}
    unknown = [
        f"{name}: {_why(name, old, new)}"
        for name in WORDS
        if name in shaky or (name in old["structure"]) != (name in new["structure"])
    ]
    changes: list[Change] = []
    slower: list[Change] = []
    for section in known:
        if section in shaky:
            continue
        sides = tuple(Side(one["structure"][section], one["times"].get(section) or ()) for one in (old, new))
        changes += WORDS[section](*sides)
        slower += sections.same_but_time(*sides)
    total = _total(old, new)
    forward = 1 if total is None or total > 0 else -1
    changes.sort(key=lambda change: -forward * (change.seconds or 0.0))
    slower.sort(key=lambda change: -abs(change.seconds or 0.0))
    return Difference(tuple(changes), tuple(slower[:SHOWN]), tuple(unknown), total)


def _why(section: str, old: Fingerprint, new: Fingerprint) -> str:
    for word, one in (("before", old), ("now", new)):
        if section in one["unstable"]:
            return f"not the same twice, {word}"
        if section not in one["structure"]:
            return f"not captured {word}"
    return "not captured"


def _total(old: Fingerprint, new: Fingerprint) -> float | None:
    """How much longer the captured step took: in kernels on an accelerator, in operators elsewhere."""
    for section in ("kernels", "operators"):
        sides = [one["times"].get(section) for one in (old, new)]
        if all(sides):
            before, after = (sum(side) for side in sides)
            return after - before if abs(after - before) > SURE * before else None
    return None
