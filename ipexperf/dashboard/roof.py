"""The roofline block of a case's page: its rates beside the machine's measured ceilings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ipexperf.history.recorded_fingerprints import medians, roof
from ipexperf.report import roofs, units

if TYPE_CHECKING:
    from ipexperf.history.records import Recorded

SIDES = (
    ("compute", "computing", "flop_rate", "FLOP/s", "peak"),
    ("memory", "moving memory", "byte_rate", "B/s", "bandwidth"),
)
"""The possible bounds of a case: name, label, rate with unit, and ceiling."""


def block(recorded: Recorded) -> dict[str, Any] | None:
    """Return each rate beside its ceiling, or None if the work of the case was not counted."""
    values, ceilings = medians(recorded), roof(recorded)
    line = roofs.rates_text(values, ceilings)
    if not line:
        return None
    return {"line": line, "sides": [] if ceilings is None else _sides(values, ceilings)}


def _sides(values: Mapping[str, float | None], ceilings: Mapping[str, Any]) -> list[dict[str, Any]]:
    sides = []
    for name, side, metric, unit, ceiling in SIDES:
        rate, ceiling_rate = values.get(metric), ceilings[ceiling]
        if rate is None:
            continue
        sides.append(
            {
                "name": side,
                "binds": ceilings["bound"] == name,
                "rate": units.scaled(rate, unit),
                "ceiling": units.scaled(ceiling_rate, unit),
                "by": ceilings[f"{ceiling}_by"] + (", emulated" if name == "compute" and ceilings["emulated"] else ""),
                "share": rate / ceiling_rate,
            }
        )
    return sides
