"""The verdict on a case: on its new session against a stored baseline, or on its pairs with another arm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ipexperf.judge import ratios, sequential
from ipexperf.judge.baseline import CaseBaseline
from ipexperf.judge.environment import RAN, SOURCE, changed_case, differences, incomparable
from ipexperf.judge.policy import PairPolicy, Policy
from ipexperf.judge.ratios import Levels, of_log, smallest_effect
from ipexperf.judge.sequential import Decision
from ipexperf.judge.spread import SessionComparison, compare
from ipexperf.outcomes import Outcome, has_numbers
from ipexperf.proof import answers
from ipexperf.ratio import Ratio
from ipexperf.result import MEAN, METRICS, PRIMARY, Measurement
from ipexperf.sentences import few, joined
from ipexperf.units import share
from ipexperf.verdict import BaselineEvidence, Level, PairsEvidence, SpeedVerdict, Verdict

LONGEST = 1e12
"""No step takes so many seconds."""
THE_MACHINE = "same software, same source: the machine or the data"
OF_HOST = ("governor", "memory_limit", "microcode")
"""Facts of a host that make it quicker or slower under the same machine_key."""
SHOWN = 4
"""Most differences of the environment that a reason names. The rest are counted."""


def judge(measurement: Measurement, baseline: CaseBaseline | None, policy: Policy) -> Verdict:
    """Judge a case. Order: failed, invalid, no_baseline, not_comparable, speed, accuracy."""
    verdict = _judge(measurement, baseline, policy)
    cut = measurement.cut and not measurement.never_began
    return replace(verdict, reason=joined(verdict.reason, measurement.cut)) if cut else verdict


def unmeasured(measurement: Measurement, label: str) -> Verdict | None:
    """The verdict by the policy of this label on a case without a speed to judge: never begun, failed or invalid."""
    if measurement.never_began:
        return Verdict("inconclusive", measurement.never_began, policy=label)
    if measurement.failure:
        return Verdict("failed", measurement.failure, policy=label)
    if measurement.invalid:
        return Verdict("invalid", measurement.invalid, policy=label)
    return None


def _judge(measurement: Measurement, baseline: CaseBaseline | None, policy: Policy) -> Verdict:
    if verdict := unmeasured(measurement, policy.label):
        return verdict
    if measurement.contended:
        return Verdict("invalid", measurement.contended, policy=policy.label, contended=True)
    launches = measurement.values(PRIMARY)
    if not launches:
        return Verdict("failed", f"no launch reported {PRIMARY}", policy=policy.label)
    if absurd := [value for value in launches if not 0 < value < (LONGEST if measurement.case.timed else math.inf)]:
        reason = f"a launch reported {PRIMARY} of {absurd[0]:g} {METRICS[PRIMARY].unit}"
        return Verdict("invalid", reason, policy=policy.label)
    if baseline is None:
        return Verdict("no_baseline", "no baseline was accepted for this case on this machine yet", policy=policy.label)

    changed = differences(baseline.environment, measurement.environment)
    evidence = _evidence(baseline, measurement, changed)
    notes = _notes(baseline, measurement)
    fields = [
        *changed_case(baseline.case, measurement.case),
        *incomparable(baseline.environment, measurement.environment),
    ]
    if fields:
        reason = f"the baseline was measured under {'; '.join(fields)}"
        return Verdict("not_comparable", reason, policy=policy.label, evidence=evidence)
    suspicion = accuracy_change(baseline.accuracy, measurement.of_run, policy)
    verdict = _of_speed(launches, baseline, measurement, policy, evidence, notes)
    return answers.named(verdict, answers.Difference(suspicion, fails=True))


def _of_speed(
    launches: Sequence[float],
    baseline: CaseBaseline,
    measurement: Measurement,
    policy: Policy,
    evidence: BaselineEvidence,
    notes: Sequence[str],
) -> Verdict:
    """The verdict on speed, which can be compared."""
    case, before = measurement.case, baseline.step_time
    unit = None if case.timed else case.primary[0]
    costs = list(map(case.cost, launches))
    if len(launches) < policy.minimum_launches:
        reason = f"{len(launches)} launch has no spread: {policy.minimum_launches} are needed to judge speed"
        ratio = Ratio(costs[0] / case.cost(before))
        return Verdict("inconclusive", "; ".join([reason, *notes]), ratio=ratio, policy=policy.label, evidence=evidence)

    comparison = compare(costs, baseline.costs, policy)
    outcome = decide(comparison, policy)
    verdict = ratios.verdict(
        outcome, comparison, _levels(policy), smallest_effect(comparison, policy, policy.again_alpha)
    )
    unknown = outcome != "ok" and not comparison.estimated
    young = f"the noise between sessions is not known before {policy.known_sessions} of them"
    old, new = baseline.environment, measurement.environment
    same = SOURCE in old and SOURCE in new and not differences(old, new, RAN)
    blamed = [THE_MACHINE] if same and outcome == "regressed" else []
    return replace(
        verdict,
        reason="; ".join([*([young] if unknown else []), *blamed, *notes]),
        level=Level(before, case.cost(case.cost(before) * of_log(comparison.log_ratio)), unit),
        p_value=comparison.p_value(policy.limit),
        policy=policy.label,
        evidence=replace(
            evidence, between_sessions=comparison.between.scale, between_sessions_known=comparison.estimated
        ),
    )


def judge_pairs(
    measurement: Measurement,
    decision: Decision | None,
    evidence: PairsEvidence | None,
    policy: PairPolicy,
    others: Sequence[Verdict] = (),
    level: Level | None = None,
) -> Verdict:
    """Judge a case: first never begun, failed and invalid, then the decision of the pairs on its speed.

    It is not ok if, by the verdict on the mean step among `others`, that looks longer when the pairs end.
    """
    if verdict := unmeasured(measurement, policy.label):
        return verdict
    if decision is None or evidence is None:
        return Verdict("failed", "no pair was measured", policy=policy.label)
    verdict = replace(decision.verdict, level=level, policy=policy.label, evidence=evidence)
    open_mean = any(other.metric == MEAN and sequential.leans(other, policy) for other in others)
    if open_mean and verdict.outcome in ("ok", "improved"):
        return replace(verdict, outcome="inconclusive", speed=SpeedVerdict(verdict.outcome, verdict.reason))
    return verdict


def on_changed_host(
    verdict: Verdict, measurement: Measurement, baseline: CaseBaseline | None, policy: Policy
) -> Verdict:
    """The verdict, led by how this host changed since this baseline of it was accepted. Such a case fails.

    The baseline may be of another `machine_key`, for a host has another one as soon as it has fewer cores. Where hosts
    have other names nothing is said: whether they are the same cannot be told.
    """
    if baseline is None:
        return verdict
    old, new = (side.get("hardware", {}) for side in (baseline.environment, measurement.environment))
    if not old.get("host") or old.get("host") != new.get("host") or not has_numbers(verdict.outcome):
        return verdict
    changed = differences(baseline.environment, measurement.environment, ("hardware",))
    if elsewhere := verdict.outcome == "no_baseline":
        changed = changed or incomparable(baseline.environment, measurement.environment)
    else:
        changed = [line for line in changed if line.partition(":")[0] in OF_HOST]
    if not changed:
        return verdict
    reason = f"this host is not what it was when the baseline was accepted: {few(changed, SHOWN)}"
    if elsewhere:
        evidence = _evidence(baseline, measurement, changed)
        return Verdict("not_comparable", reason, policy=policy.label, evidence=evidence, host_changed=True)
    return replace(verdict, reason=joined(reason, verdict.reason), host_changed=True)


def decide(comparison: SessionComparison, policy: Policy) -> Outcome:
    """Judge speed."""
    outcome = ratios.decide(comparison, policy, _levels(policy))
    # Assumed noise may be too small for this machine. It suffices to doubt a case, but not to call it ok.
    return "inconclusive" if outcome == "ok" and not comparison.estimated else outcome


def _levels(policy: Policy) -> Levels:
    return Levels(policy.again_alpha, policy.alpha, policy.ok_alpha)


def accuracy_change(old: Mapping[str, float], new: Mapping[str, float], policy: Policy) -> str:
    """The metrics of accuracy that left their bounds, in either direction, in words."""
    for metric in METRICS.values():
        name = metric.name
        before, after = old.get(name), new.get(name)
        if metric.accuracy is None or before is None or after is None:
            continue
        if not math.isfinite(after):
            return f"{name} changed from the baseline's {before:.4g} to {after}"
        if metric.accuracy.bound == "factor":
            low, high = sorted(max(value, policy.fidelity_floor) for value in (before, after))
            changed, bound = high > low * policy.fidelity_factor, f"a factor of {policy.fidelity_factor:g}"
        elif metric.accuracy.bound == "share":
            begin = max(old.get("first_loss", 0.0), new.get("first_loss", 0.0))
            changed = abs(after - before) > max(policy.loss_bound * abs(before), policy.loss_floor * begin)
            bound = share(policy.loss_bound)
        else:
            changed, bound = abs(after - before) > policy.accuracy_bound, f"{policy.accuracy_bound:g}"
        if changed:
            return f"{name} changed from the baseline's {before:.4g} to {after:.4g}, more than {bound}"
    return ""


def _evidence(baseline: CaseBaseline, measurement: Measurement, changed: Sequence[str]) -> BaselineEvidence:
    newest = max(baseline.sessions, key=lambda session: session.started_at)
    return BaselineEvidence(
        step_time=baseline.step_time,
        sessions=len(baseline.sessions),
        run=newest.run,
        commit=newest.commit,
        started_at=newest.started_at,
        accepted_at=baseline.accepted_at,
        accepted_by=baseline.accepted_by,
        reason=baseline.reason,
        expires=baseline.expires,
        expired=baseline.expired(measurement.started_at),
        differences=tuple(changed),
    )


def _notes(baseline: CaseBaseline, measurement: Measurement) -> list[str]:
    notes = []
    unmeasured = [name for name in sorted(baseline.accuracy) if measurement.median(name) is None]
    if unmeasured:
        notes.append(f"{', '.join(unmeasured)} in the baseline, but not measured this time")
    if baseline.expired(measurement.started_at):
        notes.append(f"THE BASELINE EXPIRED on {baseline.expires}: accept a new one")
    return notes
