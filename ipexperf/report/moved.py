"""How the metrics of a case changed, in words."""

from __future__ import annotations

from ipexperf.judge.screen import SAME_ARMS
from ipexperf.outcomes import title
from ipexperf.ratio import Ratio
from ipexperf.result import MEAN, METRICS
from ipexperf.units import amount, percent
from ipexperf.verdict import Verdict


def changed(verdict: Verdict) -> str:
    """How one metric changed: '+2.0 % (412 MiB -> 420 MiB)'."""
    unit = METRICS[verdict.metric].unit
    levels = verdict.level and f" ({amount(verdict.level.before, unit)} -> {amount(verdict.level.now, unit)})"
    return f"{percent(verdict.times or 1.0)}{levels or ''}"


def findings(verdict: Verdict, *, higher: bool = False) -> list[str]:
    """What was found: the time, and other metrics that moved. What decided is first. `higher`: as `of_time` has it."""
    time, alone = of_time(verdict, higher=higher), verdict.alone.outcome
    decided = verdict.outcome == alone
    others = [f"{other.metric} {changed(other)}" for other in verdict.moved if not (decided and other.metric == MEAN)]
    others += [SAME_ARMS] if verdict.pairs and not verdict.pairs.differences else []
    return [time, *others] if decided else [*others, f"its typical time alone is {title(alone)}: {time}"]


def of_time(verdict: Verdict | None, *, higher: bool = False) -> str:
    """How the time changed from the baseline's or the other arm's, with what decides: '+12.3 % [+4, +21] %'.

    `higher`: it is no time, but a number of which more is better, and what was judged is its inverse.
    """
    if verdict is None or verdict.ratio is None:
        return "-"
    ratio = Ratio(verdict.ratio.value, *verdict.bounds) if verdict.bounds else verdict.ratio
    return str(ratio.inverse if higher else ratio)
