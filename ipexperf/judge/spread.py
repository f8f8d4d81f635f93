"""Statistics of a new session against the sessions of a baseline, on the log scale."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ipexperf.judge.policy import Policy

SHAMOS = 1.04
"""Factor from the median absolute difference of pairs to the log sd of a normal sample."""
SHAMOS_LOG_SD = {3: 0.66, 4: 0.49, 5: 0.48, 6: 0.41, 7: 0.36, 8: 0.33, 9: 0.30, 10: 0.28, 11: 0.27, 12: 0.25}
"""Sessions -> sampling error of the log of that estimate, by simulation (400,000 normal samples each)."""
HODGES_LEHMANN = 1.1
"""Variance of the Hodges-Lehmann centre of 3 to 12 normal values, in units of the mean's, by simulation (<= 1.094)."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A log sd with the degrees of freedom of its estimate. Infinite: taken as known."""

    scale: float
    freedom: float

    def quantile(self, tail: float) -> float:
        """The quantile with probability `tail` above it, in units of the scale."""
        from scipy.special import ndtri, stdtrit  # type: ignore[import-untyped, unused-ignore] # stubs are a dev extra

        return -float(ndtri(tail) if math.isinf(self.freedom) else stdtrit(self.freedom, tail))


@dataclass(frozen=True, slots=True)
class SessionComparison:
    """The log slowdown of a new session, with its uncertainty within and between sessions."""

    log_ratio: float
    within: Spread
    between: Spread
    estimated: bool
    """Whether the noise between sessions was estimated rather than assumed."""

    def half_width(self, tail: float) -> float:
        """The half-width of the interval that leaves `tail` on each side."""
        if tail >= 0.5:
            return 0.0
        return math.hypot(*(part.quantile(tail) * part.scale for part in (self.within, self.between)))

    def lower(self, tail: float) -> float:
        return self.log_ratio - self.half_width(tail)

    def upper(self, tail: float) -> float:
        return self.log_ratio + self.half_width(tail)

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


def robust_scale(values: Sequence[float]) -> float:
    """The Shamos estimate of the standard deviation, from the median distance of all pairs."""
    return SHAMOS * statistics.median(abs(a - b) for a, b in combinations(values, 2))


def between_sessions(means: Sequence[float], policy: Policy) -> Spread:
    """The noise between sessions: assumed from the prior while there are few, else estimated and shrunk.

    It is shrunk to the usual noise of the machine if that is known, or to the prior. This is done on the log of the sd,
    where prior and sampling error are both about normal. The posterior is then restated as a scaled t, whose degrees of
    freedom have the same error of the log sd.
    """
    sessions = len(means)
    if sessions < policy.known_sessions:
        observed = statistics.stdev(means) if sessions > 1 else 0.0
        return Spread(max(policy.tau_prior, observed), math.inf)
    trust, error = _trust(sessions, policy)
    observed = max(robust_scale(means), policy.tau_floor)
    freedom, bias = _as_t(trust * error**2)
    return Spread(_shrunk(observed, policy.tau_pool or policy.tau_prior, trust) * math.exp(bias), freedom)


def usual_noise(series: Sequence[Sequence[float]], policy: Policy) -> float | None:
    """The usual noise between sessions on a machine, from the means of each series. None if there are too few series.

    It is shrunk to the prior as a single series would be, because all series share the same nights.
    """
    long_enough = [means for means in series if len(means) >= policy.known_sessions]
    if len(long_enough) < policy.pool_series:
        return None
    scale = statistics.median(max(robust_scale(means), policy.tau_floor) for means in long_enough)
    trust, _ = _trust(statistics.median_low(map(len, long_enough)), policy)
    # Three digits, so that cases judged alike share one policy.
    return float(f"{_shrunk(scale, policy.tau_prior, trust):.3g}")


def _trust(sessions: int, policy: Policy) -> tuple[float, float]:
    """The weight of a spread from this many sessions, and the sampling error of its log."""
    error = SHAMOS_LOG_SD.get(sessions, 0.87 / math.sqrt(sessions))
    return policy.tau_prior_spread**2 / (policy.tau_prior_spread**2 + error**2), error


def _shrunk(observed: float, expected: float, trust: float) -> float:
    return math.exp(trust * math.log(observed) + (1 - trust) * math.log(expected))


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
