"""Ratios of two workers that took turns. A pair of processes gives one ratio, from neighbouring turns."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from ipexperf.judge.ratios import Estimate, Ratio, Spread

if TYPE_CHECKING:
    from collections.abc import Sequence


def neighbour_ratio(turns_a: Sequence[float], turns_b: Sequence[float]) -> float:
    """The median log ratio of neighbouring turns, B over A. Above 0 if B is slower.

    NaN if any turn has a time that is not a number above 0.
    """
    if not all(0 < time < math.inf for time in (*turns_a, *turns_b)):
        return math.nan
    return statistics.median(math.log(b) - math.log(a) for a, b in zip(turns_a, turns_b, strict=True))


def combine(pair_log_ratios: Sequence[float]) -> Ratio:
    """The mean slowdown over pairs of fresh processes, with its t interval of 95 % on the log scale.

    A single pair has no interval.
    """
    mean, pairs = statistics.fmean(pair_log_ratios), len(pair_log_ratios)
    if pairs == 1:
        return Ratio(math.exp(mean))
    spread = Spread(statistics.stdev(pair_log_ratios) / math.sqrt(pairs), pairs - 1)
    return Estimate(mean, spread).ratio_within(0.025)
