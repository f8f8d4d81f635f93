"""The share of the roof as text: what the column of the table means, and a line per case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ipexperf.result import Measurement
from ipexperf.units import in_percent, scaled


def meaning(measurements: Iterable[Measurement]) -> str:
    """What the shares are of. A share above the whole says how to get a better roof."""
    text = "share of the highest rate that was measured here in this dtype"
    too_low = any((measurement.median("of_roof") or 0) > 1 for measurement in measurements)
    cure = "`ipexperf clean peaks --yes` has it measured again"
    return f"{text}; where it is above 100 %, the machine was probably busy then: {cure}" if too_low else text


def rate_text(metrics: Mapping[str, float | None]) -> str:
    """The rate of a case and its roof, or an empty text."""
    rate, share = metrics.get("flop_rate"), metrics.get("of_roof")
    if rate is None:
        return ""
    if share is None:
        return f"{scaled(rate, 'FLOP/s')}, with no roof"
    return f"{scaled(rate, 'FLOP/s')}: {in_percent(share)} of the roof of {scaled(rate / share, 'FLOP/s')}"
