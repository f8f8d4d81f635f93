"""Judge new software by several equal hosts, each of which measured the old and the new.

Each host gives one ratio. A random-effects combination after Hartung, Knapp, Sidik and Jonkman: the interval follows
from how far the hosts lie from one another, because what a host does from one day to the next shows there and not in
its launches. Two or three hosts say little about that, so the spread is shrunk to an assumed one. It is raised if the
cases of a comparison show that it is too small. The interval is never narrower than the launches alone make it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ipexperf.judge.policy import HostsPolicy
from ipexperf.judge.ratios import Interval, Levels, Spread, change_in_words, of_log, smallest_effect
from ipexperf.judge.sequential import judged, sentence

if TYPE_CHECKING:
    from ipexperf.outcomes import Outcome

LEAST_HOSTS = 2
"""Least number of hosts, because one has no spread between hosts. `ipexperf compare` judges one."""
LEAST_TO_NAME = 5
"""With fewer hosts none is called odd, because two or three of them agree by chance too often."""
FLOOR = 0.001
"""Lower bound on the standard error of a host's log ratio, however alike its launches are."""


@dataclass(frozen=True, slots=True)
class HostRatio:
    """The result of one host: the log of how many times slower the new software is there."""

    host: str
    log_ratio: float
    error: float
    """Its standard error, from the launches or runs of this host."""
    freedom: float
    """The degrees of freedom of that error."""

    @property
    def ratio(self) -> float:
        return of_log(self.log_ratio)


@dataclass(frozen=True, slots=True)
class Combined:
    """The combined result of several hosts."""

    outcome: Outcome
    reason: str
    ratio: float
    """How many times slower the new software is. Above 1 is slower."""
    lo: float
    hi: float
    mde: float
    hosts: int
    """The hosts that the ratio is over: all but the odd ones."""
    spread: float
    """Standard deviation of the log ratios of these hosts."""
    odd: tuple[str, ...] = ()
    """Hosts that disagree with the others, so that their machine is at fault and not the software."""
    disagree: bool = False
    """Whether the hosts disagree and no single one can be blamed."""


def of_runs(host: str, first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> HostRatio | None:
    """The ratio of a host from the launches of each of its runs, before and after. None without any spread.

    Several runs say how much one differs from the next. A single one is as sure as its launches make it.
    """
    sides = [_Side.of(runs) for runs in (first, second)]
    if any(side.freedom == 0 for side in sides):
        return None
    variance = sum(side.variance for side in sides)
    freedom = variance**2 / sum(side.variance**2 / side.freedom for side in sides)
    return HostRatio(host, sides[1].centre - sides[0].centre, math.sqrt(variance), freedom)


@dataclass(frozen=True, slots=True)
class _Side:
    """The mean log time of a host's runs, its variance, and the degrees of freedom of that: 0 without any spread."""

    centre: float
    variance: float
    freedom: float

    @classmethod
    def of(cls, runs: Sequence[Sequence[float]]) -> _Side:
        logs = [[math.log(value) for value in launches] for launches in runs]
        means = [statistics.fmean(values) for values in logs]
        freedom = sum(len(values) - 1 for values in logs)
        squares = sum((value - mean) ** 2 for values, mean in zip(logs, means, strict=True) for value in values)
        variance = squares / freedom / sum(map(len, logs)) if freedom else 0.0
        apart = statistics.variance(means) / len(means) if len(means) > 1 else 0.0
        if len(means) > 1 and apart >= variance:
            variance, freedom = apart, len(means) - 1
        return cls(statistics.fmean(means), max(variance, FLOOR**2), freedom)


def corrected(cases: Sequence[Sequence[HostRatio]], policy: HostsPolicy) -> HostsPolicy:
    """The policy with the spread from host to host that the cases of a comparison show.

    A moment estimate over all cases, as of DerSimonian and Laird. A single host that is odd in all of them does not
    count: of five hosts or more, the one is left out without which the spread is smallest.
    """
    hosts = sorted({host_ratio.host for ratios in cases for host_ratio in ratios})
    without = [None, *hosts] if len(hosts) >= LEAST_TO_NAME else [None]
    spreads = [
        _shown_spread(
            [[host_ratio for host_ratio in ratios if host_ratio.host != host] for ratios in cases], policy.spread
        )
        for host in without
    ]
    return replace(policy, shown_spread=min(spreads))


def _shown_spread(cases: Sequence[Sequence[HostRatio]], spread: float) -> float:
    """The spread that these cases show, or 0 if it is not more than this one."""
    apart = variance = freedom = 0.0
    for ratios in cases:
        if len(ratios) >= LEAST_HOSTS:
            weights = _weights(ratios, spread)
            apart += _apart(ratios, weights)
            variance += (len(ratios) - 1) * len(ratios) / sum(weights)
            freedom += len(ratios) - 1
    return math.sqrt(spread**2 + (apart - freedom) * variance / freedom**2) if apart > freedom else 0.0


def _weights(ratios: Sequence[HostRatio], spread: float) -> list[float]:
    return [1 / (max(host_ratio.error, FLOOR) ** 2 + spread**2) for host_ratio in ratios]


def _mean(ratios: Sequence[HostRatio], weights: Sequence[float]) -> float:
    return sum(weight * host_ratio.log_ratio for weight, host_ratio in zip(weights, ratios, strict=True)) / sum(weights)


def _apart(ratios: Sequence[HostRatio], weights: Sequence[float]) -> float:
    """How far the ratios lie from their mean, as a sum of squares. On average, one less than there are hosts."""
    centre = _mean(ratios, weights)
    return sum(
        weight * (host_ratio.log_ratio - centre) ** 2 for weight, host_ratio in zip(weights, ratios, strict=True)
    )


def judge(ratios: Sequence[HostRatio], policy: HostsPolicy) -> Combined:
    """Combine the ratios of equal hosts: two or more."""
    odd = _odd(ratios, policy)
    rest = [host_ratio for host_ratio in ratios if host_ratio.host not in odd]
    estimate = _estimate(rest, policy)
    # Hosts are judged once, so the policy's own rates hold.
    rates = Levels(policy.alpha, policy.alpha, policy.ok_alpha)
    outcome = judged(estimate, policy, rates, last=True)
    disagree = estimate.disagreement < policy.odd_alpha
    left_out = [host_ratio for host_ratio in ratios if host_ratio.host in odd]
    reasons = [
        sentence(outcome, estimate, policy, rates, f"{len(rest)} hosts"),
        *(_left_out(host_ratio, estimate) for host_ratio in sorted(left_out, key=lambda host_ratio: host_ratio.host)),
        *([_disagreement(estimate, rest)] if disagree else []),
    ]
    return Combined(
        outcome,
        "; ".join(reasons),
        of_log(estimate.log_ratio),
        of_log(estimate.lower(policy.ok_alpha)),
        of_log(estimate.upper(policy.ok_alpha)),
        smallest_effect(estimate, policy, policy.alpha, policy.ok_alpha),
        len(rest),
        statistics.stdev(host_ratio.log_ratio for host_ratio in rest),
        tuple(sorted(odd)),
        disagree,
    )


@dataclass(frozen=True, slots=True)
class _Estimate(Interval):
    """The mean log ratio of hosts, how well it is known, and whether they agree."""

    log_ratio: float
    between: Spread
    """The error of the mean, from how far the hosts lie from one another."""
    within: Spread
    """The error of the mean if hosts differed by the noise of their launches alone."""
    scale: float
    """The variance between hosts over the assumed one."""
    disagreement: float
    """The probability that hosts which differ as is assumed, whatever the cases show, lie so far from one another."""

    def half_width(self, tail: float) -> float:
        return max(self.between.half_width(tail), self.within.half_width(tail))


def _estimate(ratios: Sequence[HostRatio], policy: HostsPolicy) -> _Estimate:
    from scipy.special import chdtrc

    errors = [max(host_ratio.error, FLOOR) for host_ratio in ratios]
    weights = _weights(ratios, policy.likely_spread)
    total = sum(weights)
    freedom = policy.likely_trust + len(ratios) - 1
    scale = (policy.likely_trust + _apart(ratios, weights)) / freedom
    parts = [(weight * error / total) ** 2 for weight, error in zip(weights, errors, strict=True)]
    freedom_within = sum(parts) ** 2 / sum(
        part**2 / host_ratio.freedom for part, host_ratio in zip(parts, ratios, strict=True)
    )
    return _Estimate(
        _mean(ratios, weights),
        Spread(math.sqrt(scale / total), freedom),
        Spread(math.sqrt(sum(parts)), freedom_within),
        scale,
        float(chdtrc(len(ratios) - 1, _apart(ratios, _weights(ratios, policy.spread)))),
    )


def _odd(ratios: Sequence[HostRatio], policy: HostsPolicy) -> set[str]:
    """The hosts that lie apart from the others: the farthest first, at most a third of them.

    A host is compared with the others alone, so that it does not widen their spread.
    The steps share the rate of alarms.
    """
    rest, odd = list(ratios), set[str]()
    most = max(1, (len(ratios) - 1) // 3)
    while len(rest) >= LEAST_TO_NAME and len(odd) < most:
        chances = {
            host_ratio.host: _chance(host_ratio, [other for other in rest if other is not host_ratio], policy)
            for host_ratio in rest
        }
        farthest = min(rest, key=lambda host_ratio: chances[host_ratio.host])
        if chances[farthest.host] >= policy.odd_alpha / (len(rest) * most):
            break
        odd.add(farthest.host)
        rest.remove(farthest)
    return odd


def _chance(host_ratio: HostRatio, others: Sequence[HostRatio], policy: HostsPolicy) -> float:
    """The probability that a host which is like the others lies so far from them. 1 if the distance is harmless."""
    estimate = _estimate(others, policy)
    distance = abs(host_ratio.log_ratio - estimate.log_ratio)
    if distance <= policy.margin:
        return 1.0
    error = math.sqrt(estimate.scale) * math.hypot(max(host_ratio.error, FLOOR), policy.likely_spread)
    spread = Spread(math.hypot(error, estimate.between.scale), estimate.between.freedom)
    return 2 * spread.chance(distance)


def _left_out(host_ratio: HostRatio, estimate: _Estimate) -> str:
    change = change_in_words(of_log(host_ratio.log_ratio - estimate.log_ratio), "faster")
    return (
        f"left out: {host_ratio.host}, where the change is {change} than on the others: the machine, not the software"
    )


def _disagreement(estimate: _Estimate, rest: Sequence[HostRatio]) -> str:
    low, high = (
        min(rest, key=lambda host_ratio: host_ratio.log_ratio),
        max(rest, key=lambda host_ratio: host_ratio.log_ratio),
    )
    text = f"the hosts disagree, from {low.ratio - 1:+.1%} on {low.host} to {high.ratio - 1:+.1%} on {high.host}"
    if len(rest) < LEAST_TO_NAME:
        return f"{text}, and of fewer than {LEAST_TO_NAME} none is called the odd one"
    farthest = max(rest, key=lambda host_ratio: abs(host_ratio.log_ratio - estimate.log_ratio))
    return f"{text}; {farthest.host} is farthest from the others, not surely enough to leave it out"
