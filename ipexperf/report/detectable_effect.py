"""The conclusion of `ipexperf doctor`: the smallest slowdown that this machine can detect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipexperf.judge.detectable_effect import SURE, reach
from ipexperf.judge.policy import Policy
from ipexperf.outcomes import has_numbers
from ipexperf.report.units import plural

if TYPE_CHECKING:
    from ipexperf.judge.policy import PairPolicy
    from ipexperf.judge.selftest import Trial


def lines(trial: Trial, policy: PairPolicy) -> list[str]:
    """The result of the A/A, and what follows from it."""
    told = [f"A/A of {trial.case.id}: {trial.outcome}: {trial.reason}"]
    found = reach(trial.log_ratios, policy)
    if found is None or not has_numbers(trial.outcome):
        return [*told, "how small a slowdown this machine can show is not known"]
    told.append(f"pairs spread by {found.spread:.1%}, and by no more than {found.at_most:.1%} with {SURE:.0%}")
    effects = ", ".join(f"{effect:.1%} after {pairs}" for pairs, effect in found.effects)
    told.append(f"slowdowns that pairs would show in 4 of 5 comparisons: {effects}")
    if trial.outcome in ("regressed", "improved"):
        told.append("the same software was called another: trust no gate here, and see `ipexperf selftest`")
    else:
        pairs = plural(policy.max_pairs, "pair")
        told.append(f"the smallest slowdown that this machine can honestly gate on: {found.smallest:.1%} (in {pairs})")
    known = Policy()
    told.append(
        f"against a stored baseline: {known.hard_limit:.0%} at the least, "
        f"until {known.known_sessions} accepted sessions tell how this machine differs from itself"
    )
    return told
