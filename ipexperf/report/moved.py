"""How the metrics of a case changed, in words."""

from __future__ import annotations

from ipexperf.report.units import amount, change, percent
from ipexperf.result import METRICS, Verdict


def changed(verdict: Verdict) -> str:
    """How one metric changed: '+2.0 % (412 MiB -> 420 MiB)'."""
    unit = METRICS[verdict.metric].unit
    levels = verdict.level and f" ({amount(verdict.level.before, unit)} -> {amount(verdict.level.now, unit)})"
    return f"{percent(verdict.ratio or 1.0)}{levels or ''}"


def of_time(verdict: Verdict | None) -> str:
    """How the time changed from the baseline's or the other arm's, with its interval: '+12.3 % [+4, +21] %'."""
    if verdict is None or verdict.ratio is None:
        return "-"
    return change(verdict.ratio, verdict.lo, verdict.hi)
