"""Two cases of one run: how many times one's metric another's is, and how sure that is. The process is the unit."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipexperf.judge.spread import Spread
from ipexperf.result import PRIMARY, Measurement, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipexperf.judge.policy import Policy

WIDEST = math.log(1e6)
"""An interval that wide says nothing: a wider one would only be harder to read."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times the second is the first. Bounds are None where one of them has a single launch."""

    ratio: float
    lo: float | None = None
    hi: float | None = None

    @property
    def seen(self) -> bool:
        """Whether the two differ beyond doubt: what has no interval shows nothing."""
        return self.lo is not None and self.hi is not None and not self.lo <= 1 <= self.hi


def sound(measurement: Measurement, verdict: Verdict | None) -> bool:
    """Whether the numbers may be held against others: nothing failed, was invalid or was measured beside other work."""
    values = measurement.values(PRIMARY)
    return (
        bool(values)
        and all(0 < value < math.inf for value in values)
        and not (measurement.failure or measurement.invalid or measurement.contended)
        and not (verdict and verdict.outcome in ("failed", "invalid"))
    )


def compare(first: Sequence[float], second: Sequence[float], policy: Policy, family: int = 1) -> Ratio:
    """The ratio of the launches' geometric means, second over first, with Welch's interval on the log scale.

    So many ratios as `family` says share the alarm rate: their intervals hold together.
    """
    old, new = ([math.log(value) for value in values] for values in (first, second))
    centre = statistics.fmean(new) - statistics.fmean(old)
    if min(len(old), len(new)) < policy.minimum_launches:
        return Ratio(math.exp(centre))
    # Two launches may be alike by chance: no side is believed to be quieter than the policy's floor.
    parts = [max(statistics.variance(side), policy.tau_floor**2) / len(side) for side in (old, new)]
    freedom = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (old, new), strict=True))
    spread = Spread(math.sqrt(sum(parts)), freedom)
    half = min(spread.scale * spread.quantile(policy.false_discovery_rate / family / 2), WIDEST)
    return Ratio(math.exp(centre), math.exp(centre - half), math.exp(centre + half))
