"""Judge pairs of processes while they are measured, and stop as soon as the verdict is sure.

A few pairs of equal arms tell the smallest slowdown that a machine can show.

Each look tests four bounds. Slower: the slowdown is surely above the harmless share of the tolerance. Not slower: it
is surely not above the tolerance. Both are mirrored for the speed-up. Each has an alarm rate that is spent look by
look, so that looking often makes no more false alarms than looking once.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ipexperf.judge import ratios
from ipexperf.judge.policy import PairPolicy, Tolerant
from ipexperf.judge.ratios import WIDEST, Estimate, Interval, Levels, Spread, of_log, smallest_effect
from ipexperf.outcomes import Outcome
from ipexperf.ratio import Ratio
from ipexperf.verdict import Verdict

MAD = 1.4826
"""Factor from the median absolute deviation to the sd of a normal sample."""
SURE = 0.8
"""Confidence of the upper bound on the spread. A few pairs determine their spread poorly."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict so far. `done`: no more pairs are needed, or none will come."""

    verdict: Verdict
    pairs: int
    done: bool
    trimmed: int = 0

    @property
    def outcome(self) -> Outcome:
        return self.verdict.outcome


def due(pairs: int, policy: PairPolicy) -> bool:
    """Whether the judge looks after this many pairs."""
    return pairs in policy.looks or pairs >= policy.max_pairs


def next_look(pairs: int, policy: PairPolicy) -> int:
    """The number of pairs after which the judge looks next, if there are so many."""
    return next((look for look in policy.looks if pairs < look < policy.max_pairs), policy.max_pairs)


def levels(pairs: int, policy: PairPolicy, *, last: bool) -> Levels:
    """The share of each rate for this look.

    The last look spends what is left, wherever it is, because a budget may end the pairs anywhere.
    """
    if last and pairs != policy.looks[-1]:
        left = (1 - policy.spent(pairs)) * (policy.caution if pairs >= policy.trim_from else 1)
        return Levels(left * policy.alpha, left * policy.alpha, left * policy.ok_alpha)
    look = policy.looks.index(pairs)
    alarm = policy.levels[look] * policy.alpha
    return Levels(alarm, alarm, policy.ok_levels[look] * policy.ok_alpha)


def contaminated(log_ratios: Sequence[float], policy: PairPolicy) -> bool:
    """Whether a pair is so far out that the pairs must be trimmed."""
    if len(log_ratios) < policy.trim_from:
        return False
    middle = statistics.median(log_ratios)
    distances = [abs(value - middle) for value in log_ratios]
    return max(distances) > policy.outlier * max(MAD * statistics.median(distances), policy.floor)


def estimate(log_ratios: Sequence[float], policy: PairPolicy) -> tuple[Estimate, int]:
    """The mean with its t distribution, or Yuen's trimmed mean if pairs are contaminated: then how many are trimmed."""
    ordered = sorted(log_ratios)
    cut = int(policy.trim * len(ordered)) if contaminated(ordered, policy) else 0
    trimmed = ordered[cut : len(ordered) - cut]
    winsorised = [trimmed[0]] * cut + trimmed + [trimmed[-1]] * cut
    middle = statistics.fmean(winsorised)
    squares = sum((value - middle) ** 2 for value in winsorised)
    sd = max(math.sqrt(squares / (len(trimmed) - 1)), policy.floor)
    return Estimate(statistics.fmean(trimmed), Spread(sd / math.sqrt(len(trimmed)), len(trimmed) - 1)), 2 * cut


def decide(log_ratios: Sequence[float], policy: PairPolicy, *, last: bool = False) -> Decision:
    """Judge the pairs so far: decided, or to be continued. A number of pairs without a look counts as the last look.

    The order of the pairs within a look has no effect. Earlier looks are accounted for by the level of this one.
    """
    pairs = len(log_ratios)
    last = last or pairs >= policy.max_pairs or pairs not in policy.looks
    missing = [index for index, value in enumerate(log_ratios, 1) if not math.isfinite(value)]
    if missing:
        text = f"pair {missing[0]} has no ratio: one of its turns has no time above 0 s"
        return Decision(Verdict("invalid", text), pairs, done=True)
    if pairs < 2:
        text = "one pair has no spread: 2 are needed to judge speed" if pairs else "no pair was measured"
        ratio = Ratio(of_log(log_ratios[0])) if pairs else None
        return Decision(Verdict("inconclusive", text, ratio=ratio), pairs, done=True)
    # Keep the results finite, however odd a ratio is.
    log_ratios = [max(-WIDEST, min(value, WIDEST)) for value in log_ratios]
    rates = levels(pairs, policy, last=last)
    estimated, trimmed = estimate(log_ratios, policy)
    outcome = judged(estimated, policy, rates, last=last)
    verdict = ratios.verdict(outcome, estimated, rates, smallest_effect(estimated, policy, rates.alarm, rates.ok))
    verdict = replace(verdict, p_value=_p_value(log_ratios, policy, rates.alarm / policy.alpha))
    return Decision(verdict, pairs, done=last or outcome != "inconclusive", trimmed=trimmed)


def leans(verdict: Verdict, policy: PairPolicy) -> bool:
    """Whether more pairs might show a slowdown: it looks like one, which is neither proven nor excluded."""
    return verdict.outcome == "inconclusive" and (verdict.times or 0.0) > math.exp(policy.margin)


def judged(estimated: Interval, policy: Tolerant, rates: Levels, *, last: bool) -> Outcome:
    """The outcome of an interval. A slowdown surely within the tolerance is ok, even if it is surely above 0."""
    not_faster = estimated.lower(rates.ok) > -policy.limit
    if not_faster and estimated.upper(rates.ok) < policy.limit:
        return "ok"
    outcome = ratios.decide(estimated, policy, rates)
    # More pairs might show an improvement. Without them it is at least known not to be a slowdown.
    return "inconclusive" if outcome == "ok" and not last else outcome


def _p_value(log_ratios: Sequence[float], policy: PairPolicy, share: float) -> float:
    """The smallest alarm rate at which any look so far would have called the pairs regressed."""
    values = [estimate(log_ratios, policy)[0].chance(policy.margin) / share]
    for look, level in zip(policy.looks, policy.levels, strict=True):
        if look < len(log_ratios):
            values.append(estimate(log_ratios[:look], policy)[0].chance(policy.margin) / level)
    return min(1.0, *values)


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
