"""Fingerprints as text: one line per case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ipexperf.units import digits, plural, seconds, size

SHORT = 12
"""Digits of a digest to show."""
GIGA = 1e9


def in_one_line(fingerprint: Mapping[str, Any] | None) -> str:
    if fingerprint is None:
        return "no fingerprint"
    if fingerprint["unstable"]:
        return f"unstable: {', '.join(fingerprint['unstable'])} differed between two steps"
    if fingerprint["missing"]:
        return "not all could be captured: " + "; ".join(
            f"{name}: {why}" for name, why in fingerprint["missing"].items()
        )
    parts = [fingerprint["digest"][:SHORT]]
    structure = fingerprint.get("structure", {})
    kernels: Counter[tuple[str, str]] = Counter()
    for row in structure.get("primitives", ()):
        kernels[row.get("primitive", "rest"), row.get("implementation", "")] += row["calls"]
    parts += [f"{count} {name} ({how})" for (name, how), count in kernels.most_common(3)]
    for section, word in (("operators", "operator call"), ("kernels", "kernel")):
        if section in structure:
            parts.append(plural(sum(row["calls"] for row in structure[section]), word))
    if structure.get("flops"):
        parts.append(f"{digits(structure['flops'] / GIGA)} GFLOP a step")
    if fingerprint["unparsed"]:
        parts.append(f"{plural(structure['library']['unparsed'], 'line')} of oneDNN's log could not be read")
    if memory := fingerprint.get("beside", {}).get("memory"):
        counted = f"{plural(memory['allocations'], 'allocation')}, " if "allocations" in memory else ""
        parts.append(f"{counted}at most {size(memory['peak'])} at once")
    return ", ".join([*parts, f"looked at for {seconds(fingerprint['seconds'])}"])
