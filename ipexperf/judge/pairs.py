"""Ratios of two workers that took turns. A pair of processes gives one ratio, from neighbouring turns."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipexperf.judge.spread import Spread

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class PairedRatio:
    """How many times slower the second worker is. Bounds are None for a single pair."""

    ratio: float
    lo: float | None
    hi: float | None
    pairs: int


def neighbour_ratio(turns_a: Sequence[float], turns_b: Sequence[float]) -> float:
    """The median log ratio of neighbouring turns, B over A. Above 0 if B is slower.

    NaN if any turn has a time that is not a number above 0.
    """
    if len(turns_a) != len(turns_b) or not turns_a:
        raise ValueError(f"expected equally many turns of A and B, at least one; got {len(turns_a)} and {len(turns_b)}")
    if not all(0 < time < math.inf for time in (*turns_a, *turns_b)):
        return math.nan
    return statistics.median(math.log(b) - math.log(a) for a, b in zip(turns_a, turns_b, strict=True))


def combine(pair_log_ratios: Sequence[float]) -> PairedRatio:
    """The mean slowdown over pairs of fresh processes, with its t interval of 95 % on the log scale."""
    if not pair_log_ratios:
        raise ValueError("expected the log ratio of at least one pair; got none")
    mean = statistics.fmean(pair_log_ratios)
    pairs = len(pair_log_ratios)
    if pairs == 1:
        return PairedRatio(math.exp(mean), None, None, 1)
    spread = Spread(statistics.stdev(pair_log_ratios) / math.sqrt(pairs), pairs - 1)
    half = spread.scale * spread.quantile(0.025)
    return PairedRatio(math.exp(mean), math.exp(mean - half), math.exp(mean + half), pairs)
