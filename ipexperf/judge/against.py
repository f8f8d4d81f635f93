"""The verdict on a case that was measured in pairs with another arm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ipexperf.result import Measurement, Verdict

if TYPE_CHECKING:
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.judge.sequential import Decision


def judge(measurement: Measurement, decision: Decision | None, facts: Mapping[str, Any], policy: PairPolicy) -> Verdict:
    """Judge a case: first never begun, failed and invalid, then the decision of the pairs."""
    if measurement.never_began:
        return Verdict("inconclusive", measurement.never_began, policy=policy.label)
    if measurement.failure:
        return Verdict("failed", measurement.failure, policy=policy.label)
    if measurement.invalid:
        return Verdict("invalid", measurement.invalid, policy=policy.label)
    if decision is None:
        return Verdict("failed", "no pair was measured", policy=policy.label)
    alike = "" if facts["differences"] else "; both arms are the same (A/A), so what is found is noise"
    apart = f"; {facts['apart']}" if facts.get("apart") else ""
    return Verdict(
        decision.outcome,
        f"{decision.reason}; {facts['stopped']}{alike}{apart}",
        ratio=decision.ratio,
        lo=decision.lo,
        hi=decision.hi,
        p_value=decision.p_value,
        mde=decision.mde,
        policy=policy.label,
        baseline=facts,
    )
