"""What all judges share: estimates of ratios, the decision on one, and its words."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ipexperf.judge.policy import Policy, Tolerant
from ipexperf.outcomes import Outcome, has_numbers
from ipexperf.ratio import Ratio
from ipexperf.result import PRIMARY, Measurement
from ipexperf.verdict import Verdict

WIDEST = math.log(1e6)
"""Intervals are cut at this width: wider ones say nothing and are harder to read."""


def of_log(log_ratio: float) -> float:
    """The ratio of this logarithm, kept finite."""
    return math.exp(max(-WIDEST, min(log_ratio, WIDEST)))


@dataclass(frozen=True, slots=True)
class Spread:
    """A log sd with the degrees of freedom of its estimate."""

    scale: float
    freedom: float

    def half_width(self, tail: float) -> float:
        """The half-width of the interval that leaves `tail` on each side."""
        from scipy.special import stdtrit  # type: ignore[import-untyped, unused-ignore] # stubs are a dev extra

        return -float(stdtrit(self.freedom, tail)) * self.scale

    def chance(self, distance: float) -> float:
        """The probability of an error larger than this distance, on one side."""
        from scipy.special import stdtr

        return float(stdtr(self.freedom, -distance / self.scale))


class Interval:
    """Base of all estimates: a log slowdown with its uncertainty. Each bound leaves `tail` on its side."""

    __slots__ = ()
    log_ratio: float

    def half_width(self, tail: float) -> float:
        raise NotImplementedError

    def lower(self, tail: float) -> float:
        return self.log_ratio - self.half_width(tail)

    def upper(self, tail: float) -> float:
        return self.log_ratio + self.half_width(tail)

    def ends(self, tail: float) -> tuple[float, float]:
        """These bounds as ratios."""
        return of_log(self.lower(tail)), of_log(self.upper(tail))

    def ratio_within(self, tail: float) -> Ratio:
        """The ratio with these bounds."""
        return Ratio(of_log(self.log_ratio), *self.ends(tail))


@dataclass(frozen=True, slots=True)
class Estimate(Interval):
    """A log slowdown whose error has one spread."""

    log_ratio: float
    spread: Spread

    def half_width(self, tail: float) -> float:
        return min(self.spread.half_width(tail), WIDEST)

    def chance(self, limit: float) -> float:
        """The probability of a log slowdown this large if the true one were `limit`."""
        return self.spread.chance(self.log_ratio - limit)


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of the tests of a decision: for a slowdown, for an improvement, and for ok."""

    alarm: float
    improved: float
    ok: float

    def deciding(self, outcome: Outcome) -> float:
        """The level of the interval that shows why: doubt is what an alarm needed and had not."""
        return {"ok": self.ok, "improved": self.improved}.get(outcome, self.alarm)


def decide(estimate: Interval, policy: Tolerant, levels: Levels) -> Outcome:
    """Judge a change, above 0 for the worse. Each outcome but inconclusive needs proof."""
    if estimate.lower(levels.alarm) > policy.margin:
        return "regressed"
    if estimate.upper(levels.improved) < -policy.gain:
        return "improved"
    return "ok" if estimate.upper(levels.ok) < policy.limit else "inconclusive"


def smallest_effect(estimate: Interval, policy: Tolerant, alarm: float, ok: float | None = None) -> float:
    """The smallest slowdown, as a fraction, that this data would have called regressed with the policy's power.

    `alarm` is the tail of the bound that must exclude what is harmless. `ok` is that of a test which comes first, and
    calls everything within the tolerance ok.
    """
    least = policy.margin + estimate.half_width(alarm)
    if ok is not None:
        least = max(least, policy.limit - estimate.half_width(ok))
    return math.expm1(min(least + estimate.half_width(1 - policy.mde_power), WIDEST))


def verdict(outcome: Outcome, estimate: Interval, levels: Levels, effect: float) -> Verdict:
    """The verdict on an estimate: its numbers. `effect` is the smallest change that would surely have been seen."""
    bounds = estimate.ends(levels.deciding(outcome))
    return Verdict(outcome, ratio=estimate.ratio_within(levels.ok), mde=effect, bounds=bounds)


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

    The process is the unit. The intervals of `family` ratios hold together.
    """
    old, new = ([math.log(value) for value in values] for values in (first, second))
    centre = statistics.fmean(new) - statistics.fmean(old)
    if min(len(old), len(new)) < policy.minimum_launches:
        return Ratio(math.exp(centre), apart=True)
    # Few launches may be alike by chance, so the policy sets a floor for the spread of each side.
    parts = [max(statistics.variance(side), policy.tau_floor**2) / len(side) for side in (old, new)]
    freedom = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (old, new), strict=True))
    spread = Spread(math.sqrt(sum(parts)), freedom)
    return replace(Estimate(centre, spread).ratio_within(policy.false_discovery_rate / family / 2), apart=True)


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
