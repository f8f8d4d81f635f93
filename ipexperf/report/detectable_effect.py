"""The conclusion of `ipexperf doctor`: the smallest slowdown that this machine can detect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipexperf.judge.policy import Policy
from ipexperf.judge.sequential import SURE, reach
from ipexperf.outcomes import has_numbers
from ipexperf.report.units import plural

if TYPE_CHECKING:
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.judge.selftest import Trial


def lines(trial: Trial, policy: PairPolicy) -> list[str]:
    """The result of the A/A, and what follows from it."""
    rows = [f"A/A of {trial.case.id}: {trial.outcome}: {trial.reason}"]
    smallest = reach(trial.log_ratios, policy)
    if smallest is None or not has_numbers(trial.outcome):
        return [*rows, "the smallest slowdown that this machine can show is unknown"]
    rows.append(f"pairs spread by {smallest.spread:.1%}, and by no more than {smallest.at_most:.1%} with {SURE:.0%}")
    effects = ", ".join(f"{effect:.1%} after {pairs}" for pairs, effect in smallest.effects)
    rows.append(f"slowdowns that pairs would show in 4 of 5 comparisons: {effects}")
    if trial.outcome in ("regressed", "improved"):
        rows.append("equal software was called different: do not trust a gate here, and see `ipexperf selftest`")
    else:
        pairs = plural(policy.max_pairs, "pair")
        rows.append(
            f"the smallest slowdown that this machine can honestly gate on: {smallest.smallest:.1%} (in {pairs})"
        )
    judged_by = Policy()
    rows.append(
        f"against a stored baseline: no case is called ok "
        f"until {judged_by.known_sessions} accepted sessions show how this machine varies"
    )
    return rows
