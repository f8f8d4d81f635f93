"""How small a slowdown a machine can show: what its pairs spread by, carried on to more pairs than were measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ipexperf.judge.policy import PairPolicy
from ipexperf.judge.sequential import Estimate, levels, smallest_effect
from ipexperf.judge.spread import Spread

SURE = 0.8
"""The machine is no noisier than what is told, with this probability: few pairs know little of their own spread."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The smallest slowdowns that pairs like these would show in four of five comparisons, by how many there are."""

    spread: float
    """The log standard deviation that the pairs have."""
    at_most: float
    """What it may be at most, and is reckoned with."""
    effects: tuple[tuple[int, float], ...]
    """Pairs, and the smallest slowdown with so many, as a fraction."""

    @property
    def smallest(self) -> float:
        """With as many pairs as there may be."""
        return self.effects[-1][1]


def reach(log_ratios: Sequence[float], policy: PairPolicy) -> Reach | None:
    """What pairs of equal arms say of the machine; fewer than two, or one without a ratio, say nothing."""
    from scipy.special import chdtri  # type: ignore[import-untyped, unused-ignore] # stubs are a dev extra

    freedom = len(log_ratios) - 1
    if freedom < 1 or not all(map(math.isfinite, log_ratios)):
        return None
    middle = math.fsum(log_ratios) / len(log_ratios)
    seen = max(math.sqrt(math.fsum((value - middle) ** 2 for value in log_ratios) / freedom), policy.floor)
    at_most = seen * math.sqrt(freedom / float(chdtri(freedom, SURE)))
    looks = [look for look in policy.looks if look < policy.max_pairs]
    effects = tuple((pairs, _effect(pairs, at_most, policy)) for pairs in (*looks, policy.max_pairs) if pairs > 1)
    return Reach(seen, at_most, effects)


def _effect(pairs: int, scale: float, policy: PairPolicy) -> float:
    found = Estimate(0.0, Spread(scale / math.sqrt(pairs), pairs - 1))
    return smallest_effect(found, policy, levels(pairs, policy, last=pairs >= policy.max_pairs))
