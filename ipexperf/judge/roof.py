"""The roofline: how near a case comes to what its machine was measured to do. Pure functions on plain records.

What it has to do an item is counted in the untouched network (`bench.work`); how many items a second is its throughput.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ipexperf.result import Launch

WIDTHS = {"fp32": 4, "bf16": 2, "fp16": 2, "int8": 1}
"""Bytes of an element in each dtype."""
ABOVE = 1.1
"""Beyond so much of the arithmetic's ceiling that ceiling is too low: no case computes faster than its machine."""


def rated(launch: Launch, work: Mapping[str, Any], dtype: str) -> Launch:
    """The launch with its operations and bytes a second. A lower bound of bytes: those that no execution can fuse."""
    speed = launch.metrics["throughput"] / work["items"]
    rates = {"flop_rate": work["flops"] * speed, "byte_rate": work["elements"] * WIDTHS[dtype] * speed}
    return replace(launch, metrics={**launch.metrics, **rates})


def under(launch: Launch, ceilings: Mapping[str, Any], dtype: str, devices: int = 1) -> Launch:
    """A launch with rates, held against what as many devices can do; or with a note of why it cannot be."""
    peak, bandwidth = ceilings["peaks"].get(dtype), ceilings["bandwidth"]
    if peak is None:
        return noted(launch, f"has no roof: {ceilings['missing'].get(dtype, f'no ceiling of {dtype} was measured')}")
    computing = launch.metrics["flop_rate"] / (peak["rate"] * devices)
    moving = launch.metrics["byte_rate"] / (bandwidth["rate"] * devices)
    # The larger share is the same as the work over the lower of both roofs, at the case's own intensity.
    roof = {
        "bound": "compute" if computing >= moving else "memory",
        "peak": peak["rate"] * devices,
        "peak_by": peak["how"],
        "bandwidth": bandwidth["rate"] * devices,
        "bandwidth_by": bandwidth["how"],
        "emulated": dtype in ceilings["emulated"],
    }
    held = replace(launch, metrics={**launch.metrics, "of_roof": max(computing, moving)}, roof=roof)
    if computing <= ABOVE:
        return held
    why = "that was measured on a busy machine, or no product that was tried is as fast as this case"
    return noted(held, f"computed {computing:.2f} times what its ceiling says: {why}")


def noted(launch: Launch, note: str) -> Launch:
    """The launch with one more thing for the reader of its numbers."""
    return replace(launch, notes=(*launch.notes, note))


def work(launches: tuple[Launch, ...]) -> Mapping[str, Any] | None:
    """What was counted in any of a case's launches; None where nothing was, or nothing that can be counted is done."""
    known = (x.fingerprint.get("beside", {}).get("work") for x in launches if x.fingerprint)
    return next((found for found in known if found and (found["flops"] or found["elements"])), None)
