"""Judge metrics beside speed: memory, and times that a process has once. Each has its own tolerance and noise.

A run gives one value of such a metric, and two processes that are alive together give one ratio. A few of them say
little about their noise. So the noise that `Metric.gate` declares is assumed, and counts as much as some runs of the
case's own do: the scaled t distribution that normal values with a conjugate prior on their variance have.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING

from ipexperf.judge import ratios
from ipexperf.judge.policy import MetricPolicy
from ipexperf.judge.ratios import Estimate, Levels, Spread, decide, smallest_effect
from ipexperf.judge.spread import centre
from ipexperf.outcomes import has_numbers, place
from ipexperf.result import MEAN, METRICS, PRIMARY
from ipexperf.verdict import Level, SpeedVerdict, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from ipexperf.judge.baseline import CaseBaseline
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.judge.sequential import Decision

    Pairs: TypeAlias = Sequence[tuple[Mapping[str, float], Mapping[str, float]]]
    """The metrics of both processes of each pair."""

NOTHING_COMPARED = ("no_baseline", "not_comparable")
"""Outcomes of a case that had nothing to be compared with."""
KNOWN = 3
"""A function's captures must be so many before their noise is known, and before arms may differ in them."""


def in_sessions(
    values: Mapping[str, float], baseline: CaseBaseline, gate: Iterable[str], alpha: float
) -> tuple[Verdict, ...]:
    """Judge the metrics of this gate, which share `alpha`, in the values of a run against a baseline's sessions.

    A metric that either side lacks is not judged.
    """
    verdicts = []
    names = beside_speed(gate)
    for name in names:
        value, base = values.get(name), METRICS[name].relative_to
        now = values.get(base, 0.0) if base else 1.0
        kept = [session.metrics for session in baseline.sessions if {name, base or name} <= session.metrics.keys()]
        sessions = [stored[name] / (stored[base] if base else 1.0) * now for stored in kept]
        if value is None or not sessions or not all(0 < number < math.inf for number in (value, *sessions)):
            continue
        varying = baseline.case.captures_vary and captured(name)
        if varying and len(sessions) < KNOWN:
            continue
        policy = MetricPolicy.of(METRICS[name], alpha / len(names), varying=varying)
        before, spread = (_smallest if policy.smallest else _central)(sessions, value, policy)
        estimate = Estimate(math.log(value / before), spread)
        told = judge(estimate, Level(before, value), policy)
        verdicts.append(replace(told, reason="as a multiple of the typical step") if base else told)
    return tuple(verdicts)


def in_pairs(pairs: Pairs, gate: Iterable[str], alpha: float, *, captures_vary: bool = False) -> tuple[Verdict, ...]:
    """Judge the metrics of this gate, which share `alpha`, over pairs."""
    verdicts = []
    names = beside_speed(gate)
    for name in names:
        if name == MEAN:
            continue  # judged while the pairs come
        repeated = _paired_values(pairs, METRICS[name].repeated)
        values = repeated or _paired_values(pairs, name)
        if not values or not all(0 < number < math.inf for number in (value for both in values for value in both)):
            continue
        varying = captures_vary and captured(name)
        few = varying and len(values) < KNOWN
        policy = MetricPolicy.of(
            METRICS[name], alpha / len(names), pairs=True, repeated=bool(repeated), varying=varying, alike=few
        )
        if few and _apart(values, policy):
            continue
        sides = [list(side) for side in zip(*values, strict=True)]
        before, now = map(METRICS[name].of_launches, sides)
        level = Level(before, now, pairs=len(values) if len(values) < len(pairs) else None)
        assumed = policy.assumed(level.before, level.now)
        if not policy.smallest:
            logs = [math.log(b / a) for a, b in values]
            spread = moderated(logs, assumed, policy.trust)
            spread = replace(spread, scale=spread.scale / math.sqrt(len(logs)))
            estimate = Estimate(statistics.fmean(logs), spread)
        else:
            scale = max(assumed, *(_gap(side) for side in sides))
            estimate = Estimate(math.log(level.now / level.before), Spread(scale, policy.trust))
        verdicts.append(judge(estimate, level, policy))
    return tuple(verdicts)


def of_mean(decision: Decision | None, pairs: Pairs, policy: PairPolicy, gate: Sequence[str]) -> tuple[Verdict, ...]:
    """The verdict on the mean steps of pairs, from the decision on them. Empty if they were not judged."""
    own = for_mean(policy, gate)
    if decision is None or own is None:
        return ()
    found = replace(decision.verdict, metric=MEAN, policy=own.label, constants=own.to_json())
    return (replace(found, level=level_of(pairs, MEAN)),)


def level_of(pairs: Pairs, name: str) -> Level | None:
    """The geometric means of both sides, because the ratio of pairs is one. None if nothing has such a time."""
    values = [both for both in _paired_values(pairs, name) if min(both) > 0]
    if not values:
        return None
    before, now = map(statistics.geometric_mean, zip(*values, strict=True))
    return Level(before, now)


def captures_tell(pairs: Pairs, gate: Iterable[str], alpha: float) -> bool:
    """Whether more captures of a function would tell more: a count of this gate differs by more than its noise."""
    policies = (MetricPolicy.of(METRICS[name], alpha, pairs=True, varying=True) for name in gate if captured(name))
    return len(pairs) < KNOWN and any(_apart(_paired_values(pairs, policy.metric), policy) for policy in policies)


def _apart(values: Iterable[tuple[float, float]], policy: MetricPolicy) -> bool:
    """Whether any pair's captures of a function are further apart than is noise or harmless."""
    return any(abs(b - a) > max(policy.grain, math.expm1(policy.margin) * a) for a, b in values)


def _paired_values(pairs: Pairs, name: str) -> list[tuple[float, float]]:
    """The values of a metric in the pairs of which both processes have it."""
    return [(a[name], b[name]) for a, b in pairs if name in a and name in b]


def _central(sessions: Sequence[float], now: float, policy: MetricPolicy) -> tuple[float, Spread]:
    """The centre of a baseline's sessions, and the spread of another run around it."""
    logs = [math.log(value) for value in sessions]
    level = math.exp(centre(logs))
    spread = moderated(logs, policy.assumed(level, now), policy.trust)
    return level, replace(spread, scale=spread.scale * math.sqrt(1 + 1 / len(logs)))


def _smallest(sessions: Sequence[float], now: float, policy: MetricPolicy) -> tuple[float, Spread]:
    """The smallest of a baseline's sessions, and the spread of another run above it.

    If no second session is about as small, the smallest may be chance: the spread is at least their distance.
    """
    level = min(sessions)
    return level, Spread(max(math.sqrt(2) * policy.assumed(level, now), _gap(sessions)), policy.trust)


def _gap(values: Sequence[float]) -> float:
    """The log distance of the two smallest values, as three standard deviations. 0 for a single value."""
    ordered = sorted(values)
    return math.log(ordered[1] / ordered[0]) / 3 if len(ordered) > 1 else 0.0


def captured(name: str) -> bool:
    """Whether a metric is a count of a captured step."""
    gate = METRICS[name].gate
    return gate is not None and gate.captured is not None


def beside_speed(gate: Iterable[str]) -> list[str]:
    """The metrics of a gate beside the typical step. They share an alarm rate."""
    return [name for name in gate if name != PRIMARY]


def for_mean(policy: PairPolicy, gate: Sequence[str]) -> PairPolicy | None:
    """The policy for the mean steps of pairs: its share of the alarm rate of what is beside speed. None: not judged."""
    # A pair without a stall, or with two, is no outlier: nothing is trimmed.
    return replace(policy, alpha=policy.alpha / len(beside_speed(gate)), trim=0.0) if MEAN in gate else None


def moderated(values: Sequence[float], noise: float, trust: float) -> Spread:
    """The spread of these values, together with the noise that is assumed for them."""
    middle = statistics.fmean(values)
    freedom = trust + len(values) - 1
    squares = trust * noise**2 + sum((value - middle) ** 2 for value in values)
    return Spread(math.sqrt(squares / freedom), freedom)


def judge(estimate: Estimate, level: Level, policy: MetricPolicy) -> Verdict:
    """Judge one metric, given how much it changed."""
    worse = -1 if METRICS[policy.metric].higher_is_better else 1
    turned = replace(estimate, log_ratio=worse * estimate.log_ratio)
    levels = Levels(policy.alpha, policy.alpha, policy.ok_alpha)
    effect = smallest_effect(turned, policy, policy.alpha)
    return replace(
        ratios.verdict(decide(turned, policy, levels), estimate, levels, effect),
        metric=policy.metric,
        p_value=turned.chance(policy.margin),
        policy=policy.label,
        level=level,
        constants=policy.to_json(),
    )


def combined(speed: Verdict, others: Sequence[Verdict], *, gated: bool = True) -> Verdict:
    """The verdict on a case: that on its speed, or `regressed` if another metric is.

    If speed is not `gated`, its verdict is reported, but the worst of the others decides.
    """
    if not has_numbers(speed.outcome) or speed.outcome in NOTHING_COMPARED or (gated and not others):
        return speed
    alone = speed.speed or SpeedVerdict(speed.outcome, speed.reason)
    outcomes = [verdict.outcome for verdict in others]
    if not gated and not others:
        reason = "the baseline has nothing of what --perf-gate names"
        return replace(speed, outcome="no_baseline", reason=reason, speed=alone)
    if gated and (speed.outcome == "regressed" or "regressed" not in outcomes):
        return replace(speed, others=tuple(others))
    return replace(speed, outcome=min(outcomes, key=place), others=tuple(others), speed=alone)
