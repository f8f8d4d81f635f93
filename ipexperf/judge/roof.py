"""The roofline: what share of the machine's measured ceilings a case reaches. Pure functions on plain records.

The work per item is counted in the untouched network (`bench.evidence.work`). The throughput is items per second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ipexperf.dtypes import DTYPES
from ipexperf.result import Launch

ABOVE = 1.1
"""A case beyond this share of the compute ceiling shows that the ceiling is too low."""


def with_rates(launch: Launch, work: Mapping[str, Any], dtype: str) -> Launch:
    """Add operations and bytes per second to the launch. Bytes are a lower bound: only those that no fusion avoids."""
    speed = launch.metrics["throughput"] / work["items"]
    rates = {"flop_rate": work["flops"] * speed, "byte_rate": work["elements"] * DTYPES[dtype].width * speed}
    return replace(launch, metrics={**launch.metrics, **rates})


def with_share(launch: Launch, ceilings: Mapping[str, Any], dtype: str, devices: int = 1) -> Launch:
    """Add to a launch with rates its share of the ceilings of its devices, or a note why there is none."""
    peak, bandwidth = ceilings["peaks"].get(dtype), ceilings["bandwidth"]
    if peak is None:
        return with_note(
            launch, f"has no roof: {ceilings['missing'].get(dtype, f'no ceiling of {dtype} was measured')}"
        )
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
    compared = replace(launch, metrics={**launch.metrics, "of_roof": max(computing, moving)}, roof=roof)
    if computing <= ABOVE:
        return compared
    why = "that was measured on a busy machine, or none of the products tried is as fast as this case"
    return with_note(compared, f"computed {computing:.2f} times its ceiling: {why}")


def with_note(launch: Launch, note: str) -> Launch:
    """Add a note to the launch."""
    return replace(launch, notes=(*launch.notes, note))


def counted_work(launches: tuple[Launch, ...]) -> Mapping[str, Any] | None:
    """The work counted in any of a case's launches. None if none was counted."""
    counts = (x.fingerprint.get("beside", {}).get("work") for x in launches if x.fingerprint)
    return next((count for count in counts if count and (count["flops"] or count["elements"])), None)
