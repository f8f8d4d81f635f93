"""The ratio of a metric between two cases of a run, with its interval. The process is the unit."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipexperf.judge.spread import Spread
from ipexperf.outcomes import has_numbers
from ipexperf.result import PRIMARY, Measurement, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipexperf.judge.policy import Policy

WIDE = 1e3
"""An interval whose ends differ by a larger factor tells nothing, and is not shown."""
WIDEST = math.log(1e6)
"""Intervals are cut at this width: wider ones say nothing and are harder to read."""
SINGLE = "a single launch has no interval"
TOO_FEW = "too few launches to tell"
"""Said in place of an interval that is wider than WIDE."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio, second over first. Bounds are None if one of them has a single launch."""

    ratio: float
    lo: float | None = None
    hi: float | None = None

    @property
    def differs(self) -> bool:
        """Whether the interval excludes 1. Without an interval, False."""
        return self.lo is not None and self.hi is not None and not self.lo <= 1 <= self.hi


def of_log(log_ratio: float) -> float:
    """The ratio of this logarithm, kept finite."""
    return math.exp(max(-WIDEST, min(log_ratio, WIDEST)))


def sound(measurement: Measurement, verdict: Verdict | None) -> bool:
    """Whether the numbers may be compared: no launch failed, was invalid or contended, and the verdict has numbers."""
    values = measurement.values(PRIMARY)
    return (
        bool(values)
        and all(0 < value < math.inf for value in values)
        and not (measurement.failure or measurement.invalid or measurement.contended)
        and not (verdict and not has_numbers(verdict.outcome))
    )


def compare(first: Sequence[float], second: Sequence[float], policy: Policy, family: int = 1) -> Ratio:
    """The ratio of the launches' geometric means, second over first, with Welch's interval on the log scale.

    The intervals of `family` ratios hold together.
    """
    old, new = ([math.log(value) for value in values] for values in (first, second))
    centre = statistics.fmean(new) - statistics.fmean(old)
    if min(len(old), len(new)) < policy.minimum_launches:
        return Ratio(math.exp(centre))
    # Few launches may be alike by chance, so the policy sets a floor for the spread of each side.
    parts = [max(statistics.variance(side), policy.tau_floor**2) / len(side) for side in (old, new)]
    freedom = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (old, new), strict=True))
    spread = Spread(math.sqrt(sum(parts)), freedom)
    half = min(spread.scale * spread.quantile(policy.false_discovery_rate / family / 2), WIDEST)
    return Ratio(math.exp(centre), math.exp(centre - half), math.exp(centre + half))
