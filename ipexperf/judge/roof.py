"""The roof: what share of the machine's measured peak rate a case reaches. Pure functions on plain records.

The work per item is counted in the untouched network (`bench.evidence.work`). The throughput is items per second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ipexperf.result import Launch


def with_share(
    launch: Launch, work: Mapping[str, Any], peaks: Mapping[str, Any] | str, dtype: str, devices: int = 1
) -> Launch:
    """Add to a launch its operations per second, and their share of the roof of its devices or a note why it has none.

    `peaks` may be the reason why none were measured.
    """
    rate = work["flops"] * launch.metrics["throughput"] / work["items"]
    rated = replace(launch, metrics={**launch.metrics, "flop_rate": rate})
    peak = None if isinstance(peaks, str) else peaks["peaks"].get(dtype)
    if peak is None:
        reason = peaks if isinstance(peaks, str) else peaks["missing"].get(dtype, f"no peak of {dtype} was measured")
        return replace(rated, notes=(*rated.notes, f"has no roof: {reason}"))
    roof = {"rate": peak["rate"] * devices, "how": peak["how"]}
    return replace(rated, metrics={**rated.metrics, "of_roof": rate / roof["rate"]}, roof=roof)


def counted_work(launches: tuple[Launch, ...]) -> Mapping[str, Any] | None:
    """The work counted in any of a case's launches. None if none was counted."""
    counts = (x.fingerprint.get("beside", {}).get("work") for x in launches if x.fingerprint)
    return next((count for count in counts if count and count["flops"]), None)
