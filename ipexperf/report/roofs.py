"""Shares of the machine's ceilings as text: a cell of the table, and a line per case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ipexperf.report.units import scaled
from ipexperf.result import Measurement

RATES = (("flop_rate", "FLOP/s"), ("byte_rate", "B/s"))


def of(measurement: Measurement) -> Mapping[str, Any] | None:
    """The machine's ceilings for a case, or None."""
    return next((launch.roof for launch in measurement.counted if launch.roof), None)


def short(measurement: Measurement) -> str:
    """The share of the roof and the first letter of the limiting resource, or a dash."""
    share = measurement.median("of_roof")
    roof = of(measurement)
    return "-" if share is None or roof is None else f"{share:.0%} {roof['bound'][0]}"


def rates_text(metrics: Mapping[str, float | None], roof: Mapping[str, Any] | None) -> str:
    """The rates of a case and their ceilings, or an empty text."""
    rates = [scaled(value, unit) for name, unit in RATES if (value := metrics.get(name)) is not None]
    if not rates:
        return ""
    share = metrics.get("of_roof")
    if share is None or roof is None:
        return f"{' and '.join(rates)}, with no roof"
    emulated = "emulated " if roof["emulated"] else ""
    ceilings = (
        f"{scaled(roof['peak'], 'FLOP/s')} {emulated}({roof['peak_by']})",
        f"{scaled(roof['bandwidth'], 'B/s')} ({roof['bandwidth_by']})",
    )
    return f"{' and '.join(rates)}: {share:.0%} of the roof, bound by {roof['bound']}; ceilings {', '.join(ceilings)}"


def roofs_text(roofs: Iterable[tuple[str, Mapping[str, float | None], Mapping[str, Any] | None]]) -> str:
    """A line for each case whose work was counted."""
    return "\n".join(f"{name} did {line}" for name, metrics, roof in roofs if (line := rates_text(metrics, roof)))
