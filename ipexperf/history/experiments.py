"""The runs of a case that were experiments: of `ipexperf ab`, or under variables that its series does not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ipexperf.judge.environment import differences, in_few_words

SUBCOMMAND = "subcommand"
"""The key in a run's `meta` that names the subcommand of `ipexperf` that recorded it. pytest's runs have none."""
OF_ARMS = "ab"
RUNS = 10
"""The runs before one that say what is usual. So a variable that is set for good is usual after six runs."""
Variables = Mapping[str, Any]


class Ran(NamedTuple):
    """One run of a case on one machine."""

    subcommand: str | None
    variables: Variables | None
    """None: no worker lived long enough to describe them."""
    accepted: bool
    """Whether it became a baseline."""


def variables_of(environment: Mapping[str, Any]) -> Variables | None:
    """The variables of a case's environment, or None if no worker described it."""
    variables: Variables = environment.get("variables", {})
    return None if environment.get("software", {}).get("torch") is None else variables


def experiments(runs: Sequence[Ran]) -> dict[int, str]:
    """Why some of a case's runs, oldest first, are experiments, by place."""
    accepted: Variables | None = None
    reasons = {}
    for place, run in enumerate(runs):
        if run.subcommand == OF_ARMS:
            reasons[place] = f"a run of ipexperf {OF_ARMS}"
        elif run.accepted or run.variables is None:
            accepted = run.variables or accepted
        else:
            before = [
                earlier.variables for earlier in runs[max(0, place - RUNS) : place] if earlier.variables is not None
            ]
            if reason := _unusual(run.variables, before, accepted):
                reasons[place] = reason
    return reasons


def _unusual(own: Variables, before: Sequence[Variables], accepted: Variables | None) -> str:
    """The variables that neither the baseline nor at least half of the runs before have so, in a few words."""
    if before.count(own) == len(before):
        return ""
    usual = dict(own)
    for name in {*own, *(name for variables in before for name in variables)}:
        value, times = Counter(variables.get(name) for variables in before).most_common(1)[0]
        as_accepted = accepted is not None and own.get(name) == accepted.get(name)
        # A variable that is another in each run, such as the folder of a job, has no usual value.
        if 2 * times >= len(before) and not as_accepted:
            usual[name] = value
    return in_few_words(differences({"variables": usual}, {"variables": own}, ("variables",)))
