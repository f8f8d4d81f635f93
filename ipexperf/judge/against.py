"""The verdict on a case that was measured in pairs with another arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ipexperf.judge import sequential
from ipexperf.judge.metrics import TITLES
from ipexperf.judge.screen import unmeasured
from ipexperf.result import MEAN, PRIMARY, Measurement, PairsEvidence, Verdict

if TYPE_CHECKING:
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.judge.sequential import Decision


def judge(
    measurement: Measurement,
    decision: Decision | None,
    evidence: PairsEvidence | None,
    policy: PairPolicy,
    others: Sequence[Verdict] = (),
) -> Verdict:
    """Judge the speed of a case: first never begun, failed and invalid, then the decision of the pairs.

    It is not ok if, by the verdict on the mean step among `others`, that looks longer when the pairs end.
    """
    if verdict := unmeasured(measurement, policy.label):
        return verdict
    if decision is None or evidence is None:
        return Verdict("failed", "no pair was measured", policy=policy.label)
    alike = "" if evidence.differences else "; both arms are the same (A/A): any difference is noise"
    apart = f"; {evidence.apart}" if evidence.apart else ""
    outcome, reason = decision.outcome, f"{TITLES[PRIMARY]}: {decision.reason}"
    open_mean = next((x for x in others if x.metric == MEAN and sequential.leans(x, policy)), None)
    if open_mean and outcome in ("ok", "improved"):
        outcome, reason = "inconclusive", f"{TITLES[MEAN]}: {open_mean.reason}; {reason}"
    return Verdict(
        outcome,
        f"{reason}; {evidence.stopped}{alike}{apart}",
        ratio=decision.ratio,
        lo=decision.lo,
        hi=decision.hi,
        p_value=decision.p_value,
        mde=decision.mde,
        policy=policy.label,
        evidence=evidence,
    )
