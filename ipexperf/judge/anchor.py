"""Combine two verdicts on a case: one against its last runs, and one against a fixed baseline, the anchor."""

from __future__ import annotations

from dataclasses import replace

from ipexperf.result import AnchorEvidence, BaselineEvidence, Verdict


def beside(rolling: Verdict, anchor: Verdict | None) -> Verdict:
    """Return the verdict against the last runs, or the one against the anchor if only that one fails the case.

    Either way the evidence has both. The last runs never show a loss of one per cent a week. The anchor does.
    """
    if anchor is None:
        return replace(rolling, reason=f"{rolling.reason}; there is no anchor: nothing was accepted for this case")
    evidence = AnchorEvidence(anchor.outcome, anchor.ratio, anchor.reason)
    if anchor.fails and not rolling.fails:
        reason = f"against the anchor, though not against the last runs ({rolling.outcome}): {anchor.reason}"
        return replace(anchor, reason=reason, evidence=_with(anchor, evidence))
    text = f"against the anchor {anchor.outcome}"
    text += f", {100 * (anchor.ratio - 1):+.1f} %" if anchor.ratio is not None else ""
    return replace(rolling, reason=f"{rolling.reason}; {text}", evidence=_with(rolling, evidence))


def _with(verdict: Verdict, anchor: AnchorEvidence) -> BaselineEvidence:
    """The evidence of a verdict, and the anchor's in it."""
    evidence = verdict.evidence if isinstance(verdict.evidence, BaselineEvidence) else BaselineEvidence()
    return replace(evidence, anchor=anchor)
