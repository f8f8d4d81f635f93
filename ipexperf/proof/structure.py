"""Compare two fingerprints: what ran differently, without noise. Pure functions on plain records.

`judge.sections` describes each section. Here the descriptions become one list, ordered by share of the time difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ipexperf.outcomes import StructureGate
from ipexperf.proof import sections
from ipexperf.proof.sections import Section, StructureChange
from ipexperf.result import parts_of_work
from ipexperf.units import from_to, in_percent
from ipexperf.verdict import Structure

Fingerprint = Mapping[str, Any]
COMPARE = {
    "primitives": sections.primitives,
    "operators": sections.operators,
    "kernels": sections.kernels,
    "graph": sections.graph,
    "compiled": sections.compiled,
    "library": sections.library,
    "processor": sections.processor,
    "flops": sections.flops,
}
"""The functions that compare each section. Differences that account for the same time are reported in this order."""
SAME = 1e-5
"""Counts that differ by no larger share are the same: baselines are kept with six digits."""
OTHER_VALUES = 0.01
"""Batches are others if a mean differs by this share of the root mean square: rounding differs by far less."""
SHOWN = 3
"""Most rows to report that differ only in time."""
MEMORY = {"allocations": ("1", "allocations"), "allocated": ("bytes", "in all"), "peak": ("bytes", "at once")}
"""The unit of each number of a step's memory, and what it is. A function has a peak alone."""
SURE = 0.02
"""If the step times differ by less than this fraction, no shares are reported."""


@dataclass(frozen=True, slots=True)
class FingerprintDifference:
    """The differences of two fingerprints: in structure, and in time only."""

    changes: tuple[StructureChange, ...]
    slower: tuple[StructureChange, ...]
    """Rows that ran the same, but took another time."""
    unknown: tuple[str, ...]
    """Sections missing in one of the two, or unstable."""
    total: float | None
    """Seconds that the captured step took longer under the profiler. None if no shares can be computed."""

    def share(self, change: StructureChange) -> float | None:
        """The share of the time difference that a change accounts for."""
        if self.total is None or change.seconds is None:
            return None
        return change.seconds / self.total

    def losses(self) -> list[str]:
        """The changes that can only cost time, each with the kind of its loss."""
        return [f"{change.loss}: {change.text}" for change in self.changes if change.loss]

    def lines(self) -> list[str]:
        """Each change in words, with its share if it has one."""
        return [with_share(change.text, self.share(change)) for change in self.changes]


def with_share(text: str, share: float | None) -> str:
    """A change with its share of the time difference. Changes in the other direction have no share."""
    return text if share is None or share < 0.005 else f"{text}; {in_percent(min(share, 1))} of the time difference"


def name(digest: Fingerprint | None) -> str | None:
    """The version and digest that a baseline keeps. None if the fingerprint is incomplete or unstable."""
    return f"{digest['version']}:{digest['digest']}" if digest and digest["digest"] else None


def common(captured: Sequence[Fingerprint | None]) -> tuple[Structure, Fingerprint | None]:
    """The common fingerprint of a case's launches, or why there is none: `unstable` or `unknown`."""
    fingerprints = [fingerprint for fingerprint in captured if fingerprint]
    if not fingerprints:
        return Structure("unknown", "nothing was captured"), None
    shaky = sorted({section for fingerprint in fingerprints for section in fingerprint["unstable"]})
    if shaky:
        return Structure("unstable", f"{', '.join(shaky)} differed between two steps of one process"), fingerprints[0]
    missing = {section: why for fingerprint in fingerprints for section, why in fingerprint["missing"].items()}
    if missing:
        text = "; ".join(f"{section}: {why}" for section, why in sorted(missing.items()))
        return Structure("unknown", f"not all could be captured: {text}"), fingerprints[0]
    other = next(
        (fingerprint for fingerprint in fingerprints if fingerprint["digest"] != fingerprints[0]["digest"]), None
    )
    if other is not None:
        lines = diff(fingerprints[0], other).lines() if "structure" in fingerprints[0] and "structure" in other else []
        return Structure("unstable", "the launches of one run differ", tuple(lines)), fingerprints[0]
    return Structure("same"), fingerprints[0]


def judge(
    launches: Sequence[Fingerprint | None],
    baseline: str | None,
    before: Callable[[], Fingerprint | None],
    *,
    known: Mapping[str, float] = MappingProxyType({}),
    gate: StructureGate = "warn",
) -> Structure:
    """Compare a case's launches with the accepted digest. `before` looks up the fingerprint of that digest.

    Only a changed structure can fail the test: with `loss` if it can only cost time, with `fail` always. An unstable
    or unknown one fails only by more work than what is `known` of the baseline's.
    """
    compared, old = _judged(launches, baseline, before, gate)
    first = next((launch for launch in launches if launch), None)
    return _with_work(compared, {**work_of(old), **known}, work_of(first), gate)


def _judged(
    launches: Sequence[Fingerprint | None],
    baseline: str | None,
    before: Callable[[], Fingerprint | None],
    gate: StructureGate,
) -> tuple[Structure, Fingerprint | None]:
    """What ran beside the accepted digest, and its fingerprint where it was needed and is known."""
    state, structure = common(launches)
    if state.outcome != "same" or structure is None:
        return state, None
    if baseline is None:
        return Structure("unknown", "the baseline has no fingerprint"), None
    if baseline == name(structure):
        return Structure("same"), None
    if baseline.partition(":")[0] != str(structure["version"]):
        return Structure("unknown", "the baseline's fingerprint is of another version: accept a new one"), None
    old = before()
    if old is None:
        reason = "the digest is not the baseline's, and this history does not have the run that was accepted"
        return Structure("changed", reason, fails=gate == "fail"), None
    changed = _changed(old, structure, "the digest is not the baseline's", gate)
    if not changed.losses:
        return changed, old
    return replace(changed, reason=f"{changed.reason}, and what changed can only cost time"), old


def between(old: Fingerprint | None, new: Fingerprint | None, *, gate: StructureGate = "warn") -> Structure:
    """Compare the two arms of a pair. By default a difference is no alarm, because it may be intended."""
    return _with_work(_between(old, new, gate), work_of(old), work_of(new), gate)


def _between(old: Fingerprint | None, new: Fingerprint | None, gate: StructureGate) -> Structure:
    for word, fingerprint in (("the other arm: ", old), ("", new)):
        state, _ = common([fingerprint])
        if state.outcome != "same":
            return replace(state, reason=word + state.reason)
    if old is None or new is None or old["version"] != new["version"]:
        return Structure("unknown", "the arms' fingerprints are of different versions")
    if old["digest"] == new["digest"]:
        return Structure("same")
    return _changed(old, new, "the two arms run different kernels", gate)


def _changed(old: Fingerprint, new: Fingerprint, reason: str, gate: StructureGate) -> Structure:
    difference = diff(old, new)
    losses = tuple(difference.losses())
    fails = gate == "fail" or (gate == "loss" and bool(losses))
    return Structure("changed", reason, tuple(difference.lines()), losses, fails=fails)


def work_of(fingerprint: Fingerprint | None) -> dict[str, Any]:
    """What is known of the work of a step by its fingerprint: its counts, and the content of its batch."""
    if fingerprint is None:
        return {}
    beside = fingerprint.get("beside", {})
    known = {**beside.get("work", {}), "batch": beside.get("batch")}
    return {name: known[name] for name in (*parts_of_work(), "batch") if known.get(name) is not None}


def _with_work(
    structure: Structure, before: Mapping[str, Any], after: Mapping[str, Any], gate: StructureGate
) -> Structure:
    """The structure, with how the work of a step is another. More operations fail unless the gate only warns."""
    words = parts_of_work()
    sides = {name: (before[name], after[name]) for name in words if name in before and name in after}
    changes = {name: b / a - 1 for name, (a, b) in sides.items() if a and abs(b / a - 1) > SAME}
    texts = [f"{_percent(change)} {words[name]}" for name, change in changes.items()]
    texts += _other_batch(before.get("batch"), after.get("batch"))
    more = changes.get("step_flops", 0.0) > 0
    return replace(structure, work=", ".join(texts), fails=structure.fails or (more and gate != "warn"))


def other_work(old: Fingerprint | None, new: Fingerprint | None) -> str:
    """How the work of a step in the untouched network differs. Empty if it does not, or is not known of both."""
    before, after = ((side or {}).get("structure", {}).get("flops") for side in (old, new))
    return other_operations(before, after)


def _percent(change: float) -> str:
    return f"{100 * change:+,.0f} %" if abs(change) >= 0.1 else f"{100 * change:+.2g} %"


def _other_batch(old: Sequence[Mapping[str, Any]] | None, new: Sequence[Mapping[str, Any]] | None) -> list[str]:
    """How the content of two batches differs, in at most one line."""
    if old is None or new is None:
        return []
    before, after = (", ".join("x".join(map(str, tensor["shape"])) for tensor in side) for side in (old, new))
    if before != after:
        return [f"another batch ({before} -> {after})"]
    other = any(
        abs(b[name] - a[name]) > OTHER_VALUES * a["rms"]
        for a, b in zip(old, new, strict=True)
        for name in ("mean", "rms")
    )
    return ["other values in the batch"] if other else []


def other_operations(before: int | None, after: int | None) -> str:
    """How two counts of floating point operations differ. Empty if they do not, or one is not known."""
    if before is None or after is None:
        return ""
    return "".join(change.text for change in sections.flops(Section(before, ()), Section(after, ())))


def memory(old: Fingerprint, new: Fingerprint) -> str:
    """How the allocations of a step differ, or an empty text. Allocations are not part of the digest."""
    before, after = (fingerprint.get("beside", {}).get("memory", {}) for fingerprint in (old, new))
    both = {name: words for name, words in MEMORY.items() if name in before and name in after and before != after}
    return ", ".join(f"{from_to(before[name], after[name], unit)} {what}" for name, (unit, what) in both.items())


def diff(old: Fingerprint, new: Fingerprint) -> FingerprintDifference:
    """All differences: other work first, then those with the largest share of the time difference."""
    common = [name for name in COMPARE if name in old["structure"] and name in new["structure"]]
    shaky = {*old["unstable"], *new["unstable"]}
    unknown = [
        f"{name}: {_why(name, old, new)}"
        for name in COMPARE
        if name in shaky or (name in old["structure"]) != (name in new["structure"])
    ]
    changes: list[StructureChange] = []
    slower: list[StructureChange] = []
    for section in common:
        if section in shaky:
            continue
        sides = tuple(
            Section(fingerprint["structure"][section], fingerprint["times"].get(section) or ())
            for fingerprint in (old, new)
        )
        changes += COMPARE[section](*sides)
        slower += sections.same_but_time(*sides)
    total = _total(old, new)
    forward = 1 if total is None or total > 0 else -1
    changes.sort(key=lambda change: (not change.work, -forward * (change.seconds or 0.0)))
    slower.sort(key=lambda change: -abs(change.seconds or 0.0))
    return FingerprintDifference(tuple(changes), tuple(slower[:SHOWN]), tuple(unknown), total)


def _why(section: str, old: Fingerprint, new: Fingerprint) -> str:
    for word, fingerprint in (("before", old), ("now", new)):
        if section in fingerprint["unstable"]:
            return f"not the same twice, {word}"
        if section not in fingerprint["structure"]:
            return f"not captured {word}"
    return "not captured"


def _total(old: Fingerprint, new: Fingerprint) -> float | None:
    """How much longer the captured step took, by kernels on an accelerator and by operators elsewhere."""
    for section in ("kernels", "operators"):
        sides = [fingerprint["times"].get(section) for fingerprint in (old, new)]
        if all(sides):
            before, after = (sum(side) for side in sides)
            noise = sum((fingerprint.get("spread") or {}).get(section, 0.0) for fingerprint in (old, new))
            return after - before if abs(after - before) > max(SURE * before, noise) else None
    return None
