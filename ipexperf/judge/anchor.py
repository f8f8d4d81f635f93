"""Two verdicts on one case: against the last runs, which move, and against the anchor, which does not."""

from __future__ import annotations

from dataclasses import replace

from ipexperf.result import Verdict


def beside(rolling: Verdict, anchor: Verdict | None) -> Verdict:
    """The verdict against the last runs, with what the anchor says; where that alone fails the case, the anchor's.

    One per cent a week is never seen by a window that moves along. It is seen by what was accepted once.
    """
    if anchor is None:
        return replace(rolling, reason=f"{rolling.reason}; there is no anchor: nothing was accepted for this case")
    facts = {"outcome": anchor.outcome, "ratio": anchor.ratio, "reason": anchor.reason}
    if anchor.fails and not rolling.fails:
        reason = f"against the anchor, though not against the last runs ({rolling.outcome}): {anchor.reason}"
        return replace(anchor, reason=reason, baseline={**(anchor.baseline or {}), "anchor": facts})
    told = f"against the anchor {anchor.outcome}"
    told += f", {100 * (anchor.ratio - 1):+.1f} %" if anchor.ratio is not None else ""
    return replace(rolling, reason=f"{rolling.reason}; {told}", baseline={**(rolling.baseline or {}), "anchor": facts})
