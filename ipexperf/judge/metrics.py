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
from ipexperf.judge.ratios import Estimate, Levels, Spread, decide, of_log, smallest_effect
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
TITLES = {PRIMARY: "typical time", MEAN: "mean time"}
"""What a verdict is about, where that has another name than the metric."""


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
        before, spread = (_smallest if policy.smallest else _central)(sessions, policy)
        estimate = Estimate(math.log(value / before), spread)
        than = "the baseline's, as a multiple of the typical step" if base else "the baseline"
        verdicts.append(judge(estimate, Level(before, value), policy, than))
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
        level = Level(*(METRICS[name].of_launches(side) for side in sides))
        assumed = policy.assumed(level.before)
        if not policy.smallest:
            logs = [math.log(b / a) for a, b in values]
            spread = moderated(logs, assumed, policy.trust)
            spread = replace(spread, scale=spread.scale / math.sqrt(len(logs)))
            estimate = Estimate(statistics.fmean(logs), spread)
        else:
            scale = max(assumed, *(_gap(side) for side in sides))
            estimate = Estimate(math.log(level.now / level.before), Spread(scale, policy.trust))
        verdicts.append(judge(estimate, level, policy, "the other arm"))
    return tuple(verdicts)


def of_mean(decision: Decision | None, pairs: Pairs, policy: PairPolicy, gate: Sequence[str]) -> tuple[Verdict, ...]:
    """The verdict on the mean steps of pairs, from the decision on them. Empty if they were not judged."""
    own = for_mean(policy, gate)
    if decision is None or own is None:
        return ()
    level = Level(*map(METRICS[MEAN].of_launches, zip(*_paired_values(pairs, MEAN), strict=True)))
    verdict = replace(
        decision.verdict, metric=MEAN, policy=own.label, level=level, constants=own.to_json(), bounds=None
    )
    return (verdict,)


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


def _central(sessions: Sequence[float], policy: MetricPolicy) -> tuple[float, Spread]:
    """The centre of a baseline's sessions, and the spread of another run around it."""
    logs = [math.log(value) for value in sessions]
    level = math.exp(centre(logs))
    spread = moderated(logs, policy.assumed(level), policy.trust)
    return level, replace(spread, scale=spread.scale * math.sqrt(1 + 1 / len(logs)))


def _smallest(sessions: Sequence[float], policy: MetricPolicy) -> tuple[float, Spread]:
    """The smallest of a baseline's sessions, and the spread of another run above it.

    If no second session is about as small, the smallest may be chance: the spread is at least their distance.
    """
    level = min(sessions)
    return level, Spread(max(math.sqrt(2) * policy.assumed(level), _gap(sessions)), policy.trust)


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


def judge(estimate: Estimate, level: Level, policy: MetricPolicy, than: str) -> Verdict:
    """Judge one metric, given how much it changed."""
    worse = -1 if METRICS[policy.metric].higher_is_better else 1
    turned = replace(estimate, log_ratio=worse * estimate.log_ratio)
    levels = Levels(policy.alpha, policy.alpha, policy.ok_alpha)
    difference = of_log(estimate.log_ratio) - 1
    verdict = ratios.verdict(
        decide(turned, policy, levels),
        estimate,
        policy,
        levels,
        change=f"{abs(difference):.1%} {'more' if difference >= 0 else 'less'} than {than}",
        effect=smallest_effect(turned, policy, policy.alpha),
        worse="change for the worse",
    )
    return replace(
        verdict,
        metric=policy.metric,
        p_value=turned.chance(policy.margin),
        policy=policy.label,
        level=level,
        constants=policy.to_json(),
        bounds=None,
    )


def combined(speed: Verdict, others: Sequence[Verdict], *, gated: bool = True) -> Verdict:
    """The verdict on a case: that on its speed, or `regressed` if another metric is.

    If speed is not `gated`, its verdict is reported, but the worst of the others decides.
    """
    if not has_numbers(speed.outcome) or speed.outcome in NOTHING_COMPARED or (gated and not others):
        return speed
    both = replace(speed, others=tuple(others), speed=SpeedVerdict(speed.outcome, speed.reason))
    regressed = [verdict for verdict in others if verdict.outcome == "regressed"]
    if not gated:
        if not others:
            return replace(both, outcome="no_baseline", reason="the baseline has nothing of what --perf-gate names")
        outcome = min((verdict.outcome for verdict in others), key=place)
        return replace(
            both, outcome=outcome, reason=_reasons(verdict for verdict in others if verdict.outcome == outcome)
        )
    if not regressed:
        return replace(speed, others=tuple(others))
    if speed.outcome == "regressed":
        return replace(both, reason=f"{speed.reason}; {_reasons(regressed)}")
    return replace(both, outcome="regressed", reason=f"{_reasons(regressed)}; {speed.reason}")


def _reasons(verdicts: Iterable[Verdict]) -> str:
    return "; ".join(f"{TITLES.get(verdict.metric, verdict.metric)}: {verdict.reason}" for verdict in verdicts)
