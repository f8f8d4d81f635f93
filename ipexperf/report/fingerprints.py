"""Fingerprints as text: one line per case, and lines of the summary for changes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ipexperf.case import AGAINST
from ipexperf.report.lines import named
from ipexperf.report.units import digits, plural, seconds, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ipexperf.result import Measurement, Verdict

SHORT = 12
"""Digits of a digest to show."""
TOLD = 4
"""Most cases to show with their changes. The rest are counted; `ipexperf why` shows everything."""
GIGA = 1e9


def structure_lines(measurements: Sequence[Measurement], verdicts: Mapping[str, Verdict]) -> list[str]:
    """Lines for cases whose kernels differ from those of their baseline, and for unstable ones."""
    judged = [(x.case.id, verdict) for x in measurements if (verdict := verdicts.get(x.case.uid))]
    structures = [(name, verdict.structure) for name, verdict in judged if verdict.structure is not None]
    pairs = any(AGAINST in dict(x.case.knobs) for x in measurements)
    lost = [(name, structure) for name, structure in structures if structure.losses and not pairs]
    changed = [one for one in structures if one[1].outcome == "changed" and one not in lost]
    unstable = [name for name, structure in structures if structure.outcome == "unstable"]
    lines = []
    if lost:
        lines.append(f"OPTIMISATIONS LOST ({len(lost)}): these run what can only cost time")
        lines += _limited([(name, structure.losses, structure.reason) for name, structure in lost])
    if changed:
        other = "the other arm does" if pairs else "their baseline did"
        lines.append(f"STRUCTURE CHANGED ({len(changed)}): these run different kernels than {other}")
        lines += _limited([(name, structure.changes, structure.reason) for name, structure in changed])
    if unstable:
        lines.append(f"STRUCTURE UNSTABLE ({len(unstable)}): the kernels differ from step to step: {named(unstable)}")
    return lines


def _limited(cases: Sequence[tuple[str, Sequence[str], str]]) -> list[str]:
    """A line for each of the first cases: its first change, or else the reason."""
    lines = []
    for name, changes, reason in cases[:TOLD]:
        more = f" (and {plural(len(changes) - 1, 'more change')})" if len(changes) > 1 else ""
        lines.append(f"    {name}: {changes[0] if changes else reason}{more}")
    return [*lines, *([f"    and {plural(len(cases) - TOLD, 'more case')}"] if len(cases) > TOLD else [])]


def in_one_line(comparison: Mapping[str, Any] | None) -> str:
    """A fingerprint in one line."""
    if comparison is None:
        return "no fingerprint"
    if comparison["unstable"]:
        return f"unstable: {', '.join(comparison['unstable'])} differed between two steps"
    if comparison["missing"]:
        return "not all could be captured: " + "; ".join(
            f"{name}: {why}" for name, why in comparison["missing"].items()
        )
    parts = [comparison["digest"][:SHORT]]
    structure = comparison.get("structure", {})
    kernels: Counter[tuple[str, str]] = Counter()
    for row in structure.get("primitives", ()):
        kernels[row.get("primitive", "rest"), row.get("implementation", "")] += row["calls"]
    parts += [f"{count} {name} ({how})" for (name, how), count in kernels.most_common(3)]
    for section, word in (("operators", "operator call"), ("kernels", "kernel")):
        if section in structure:
            parts.append(plural(sum(row["calls"] for row in structure[section]), word))
    if structure.get("flops"):
        parts.append(f"{digits(structure['flops'] / GIGA)} GFLOP a step")
    if comparison["unparsed"]:
        parts.append(f"{plural(structure['library']['unparsed'], 'line')} of oneDNN's log could not be read")
    if memory := comparison.get("beside", {}).get("memory"):
        counted = f"{plural(memory['allocations'], 'allocation')}, " if "allocations" in memory else ""
        parts.append(f"{counted}at most {size(memory['peak'])} at once")
    return ", ".join([*parts, f"looked at for {seconds(comparison['seconds'])}"])


def fingerprint_text(fingerprint: Iterable[tuple[str, Mapping[str, Any] | None]]) -> str:
    """A line for each case that has a fingerprint."""
    return "\n".join(f"{name} ran {in_one_line(structure)}" for name, structure in fingerprint if structure is not None)
