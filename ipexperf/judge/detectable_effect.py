"""The smallest slowdown that a machine can show, extrapolated from the spread of a few pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ipexperf.judge.policy import PairPolicy
from ipexperf.judge.ratios import Estimate, Spread, smallest_effect
from ipexperf.judge.sequential import levels

SURE = 0.8
"""Confidence of the upper bound on the spread. A few pairs determine their spread poorly."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The smallest slowdown that four of five comparisons would show, for some numbers of pairs."""

    spread: float
    """The log standard deviation of the pairs."""
    at_most: float
    """The upper bound of that spread. The effects are computed from it."""
    effects: tuple[tuple[int, float], ...]
    """Numbers of pairs, each with the smallest slowdown as a fraction."""

    @property
    def smallest(self) -> float:
        """The smallest slowdown with the largest number of pairs."""
        return self.effects[-1][1]


def reach(log_ratios: Sequence[float], policy: PairPolicy) -> Reach | None:
    """Estimate from pairs of equal arms. None for fewer than two pairs, or if a pair has no ratio."""
    from scipy.special import chdtri  # type: ignore[import-untyped, unused-ignore] # stubs are a dev extra

    freedom = len(log_ratios) - 1
    if freedom < 1 or not all(map(math.isfinite, log_ratios)):
        return None
    middle = math.fsum(log_ratios) / len(log_ratios)
    spread = max(math.sqrt(math.fsum((value - middle) ** 2 for value in log_ratios) / freedom), policy.floor)
    at_most = spread * math.sqrt(freedom / float(chdtri(freedom, SURE)))
    looks = [look for look in policy.looks if look < policy.max_pairs]
    effects = tuple((pairs, _effect(pairs, at_most, policy)) for pairs in (*looks, policy.max_pairs) if pairs > 1)
    return Reach(spread, at_most, effects)


def _effect(pairs: int, scale: float, policy: PairPolicy) -> float:
    rates = levels(pairs, policy, last=pairs >= policy.max_pairs)
    return smallest_effect(Estimate(0.0, Spread(scale / math.sqrt(pairs), pairs - 1)), policy, rates.alarm, rates.ok)
