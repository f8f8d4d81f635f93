"""Statistics of a new session against the sessions of a baseline, on the log scale."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement

from ipexperf.judge.policy import Policy
from ipexperf.judge.ratios import Interval, Spread

SHAMOS = 1.04
"""Factor from the median absolute difference of pairs to the log sd of a normal sample."""
SHAMOS_LOG_SD = {2: 1.11, 3: 0.66, 4: 0.49, 5: 0.48, 6: 0.41, 7: 0.36, 8: 0.33, 9: 0.30, 10: 0.28, 11: 0.27, 12: 0.25}
"""Sessions -> sampling error of the log of that estimate, by simulation (400,000 normal samples each)."""
HODGES_LEHMANN = 1.1
"""Variance of the Hodges-Lehmann centre of 3 to 12 normal values, in units of the mean's, by simulation (<= 1.094)."""


@dataclass(frozen=True, slots=True)
class SessionComparison(Interval):
    """The log slowdown of a new session, with its uncertainty within and between sessions."""

    log_ratio: float
    within: Spread
    between: Spread
    estimated: bool
    """Whether the noise between sessions was estimated rather than assumed."""

    def half_width(self, tail: float) -> float:
        return math.hypot(self.within.half_width(tail), self.between.half_width(tail))

    def p_value(self, limit: float) -> float:
        """The probability of a log slowdown this large if the true one were `limit`."""
        distance = self.log_ratio - limit
        low, high = math.log(1e-12), math.log(0.5)
        if self.half_width(math.exp(low)) <= abs(distance):
            tail = 1e-12
        else:
            for _ in range(60):
                middle = (low + high) / 2
                low, high = (middle, high) if self.half_width(math.exp(middle)) > abs(distance) else (low, middle)
            tail = math.exp(high)
        return tail if distance > 0 else 1 - tail


def centre(values: Sequence[float]) -> float:
    """The Hodges-Lehmann centre: the median of the means of all pairs. One odd session hardly moves it."""
    return statistics.median((a + b) / 2 for a, b in combinations_with_replacement(values, 2))


def between_sessions(means: Sequence[float], policy: Policy) -> Spread:
    """The noise between sessions: what is expected on the machine, corrected by the case's own sessions.

    Both are combined on the log of the sd, where their errors are about normal, and restated as a scaled t, whose
    degrees of freedom have the same error of the log sd.
    """
    expected = math.log(policy.tau_prior), policy.tau_prior_spread**2
    if len(means) > 1:
        expected = _combined(expected, _of_sessions(means, policy), _error(len(means)))
    freedom, bias = _as_t(expected[1])
    return Spread(math.exp(expected[0] + bias), freedom)


def usual_noise(series: Sequence[Sequence[Sequence[float]]], policy: Policy) -> Policy:
    """The policy with what the sessions of this machine's series tell of its noise, in place of the prior.

    `series` has the log step times of the launches of each session. How much the launches of a session differ says how
    quiet the machine is, before any session can be compared with another. The spread of sessions is added as that of a
    single series would be, because all series share the same nights.
    """
    groups = [session for sessions in series for session in sessions if len(session) > 1]
    if not groups:
        return policy
    freedom = sum(len(group) - 1 for group in groups)
    within = max(math.sqrt(sum(map(_squares, groups)) / freedom), policy.tau_floor)
    expected = math.log(policy.tau_prior), policy.tau_prior_spread**2
    error = policy.launch_spread**2 + 1 / (2 * freedom)
    expected = _combined(expected, policy.launch_factor * within, error)
    means = [[statistics.fmean(session) for session in sessions] for sessions in series if len(sessions) > 1]
    if len(means) >= policy.pool_series:
        scale = statistics.median(_of_sessions(sessions, policy) for sessions in means)
        expected = _combined(expected, scale, _error(statistics.median_low(map(len, means))))
    # Three digits, so that cases judged alike share one policy.
    prior, spread = (float(f"{value:.3g}") for value in (math.exp(expected[0]), math.sqrt(expected[1])))
    return replace(policy, tau_prior=prior, tau_prior_spread=spread)


def _of_sessions(means: Sequence[float], policy: Policy) -> float:
    """The Shamos estimate of the standard deviation, from the median distance of all pairs."""
    return max(SHAMOS * statistics.median(abs(a - b) for a, b in combinations(means, 2)), policy.tau_floor)


def _error(sessions: int) -> float:
    """The sampling variance of the log of the spread of so many sessions."""
    return SHAMOS_LOG_SD.get(sessions, 0.87 / math.sqrt(sessions)) ** 2


def _combined(expected: tuple[float, float], scale: float, error: float) -> tuple[float, float]:
    """Mean and variance of a log sd that was expected so, and observed to be `scale` with this variance of its log."""
    mean, variance = expected
    trust = variance / (variance + error)
    return mean + trust * (math.log(scale) - mean), trust * error


@functools.cache
def _as_t(variance: float) -> tuple[float, float]:
    """The degrees of freedom whose log sd has this sampling variance, and the bias of its mean."""
    from scipy.special import polygamma

    low, high = 0.1, 1e4
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if float(polygamma(1, middle / 2)) / 4 > variance else (low, middle)
    return high, (float(polygamma(0, high / 2)) - math.log(high / 2)) / 2


def compare(launches: Sequence[float], sessions: Sequence[Sequence[float]], policy: Policy) -> SessionComparison:
    """Compare the launches of a session with the sessions of a baseline, all in seconds."""
    new = [math.log(value) for value in launches]
    old = [[math.log(value) for value in session] for session in sessions]
    means = [statistics.fmean(session) for session in old]
    own_spread = len(means) >= policy.known_sessions

    groups = [new, *old]
    freedom = sum(len(group) - 1 for group in groups)
    pooled = sum(_squares(group) for group in groups) / freedom if freedom else math.inf
    variance = _squares(new) / (len(new) - 1) if len(new) > 1 else 0.0
    # The spread of sessions already includes the noise of their launches.
    shares = 0.0 if own_spread else sum(1 / len(session) for session in old) / len(old) ** 2
    within = math.sqrt(max(pooled, variance) * (1 / len(new) + shares))

    if freedom:
        # A case whose launches differ more than is usual is noisier between sessions too.
        policy = replace(policy, tau_prior=max(policy.tau_prior, policy.launch_factor * math.sqrt(pooled)))
    tau = between_sessions(means, policy)
    share = (HODGES_LEHMANN if own_spread else 1.0) / len(means)
    return SessionComparison(
        log_ratio=statistics.fmean(new) - centre(means),
        within=Spread(within, freedom or 1),
        between=Spread(tau.scale * math.sqrt(1 + share), tau.freedom),
        estimated=own_spread,
    )


def _squares(values: Sequence[float]) -> float:
    mean = statistics.fmean(values)
    return sum((value - mean) ** 2 for value in values)
