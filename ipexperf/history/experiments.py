"""The runs of a case that were experiments: of `ipexperf ab`, or under variables that its series does not have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import JSON, Connection, and_, select, type_coerce

from ipexperf.history.schema import baseline, case, environment, launch, run, series
from ipexperf.judge.environment import differences, in_few_words
from ipexperf.result import PRIMARY

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
    for place, ran in enumerate(runs):
        before = [earlier.variables for earlier in runs[max(0, place - RUNS) : place] if earlier.variables is not None]
        if ran.subcommand == OF_ARMS:
            reasons[place] = f"a run of ipexperf {OF_ARMS}"
        elif ran.accepted:
            accepted = ran.variables
        elif ran.variables is not None and (reason := _unusual(ran.variables, before, accepted)):
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


def read(connection: Connection, case_uids: Collection[str]) -> dict[tuple[str, str, str], str]:
    """Why runs of these cases were experiments, by the uid of the case, the machine and the uid of the run."""
    facts = (case.c.uid, environment.c.machine_key, run.c.uid.label("run_uid"), environment.c.doc)
    subcommand = type_coerce(run.c.meta, JSON)[SUBCOMMAND].as_string().label("subcommand")
    query = (
        select(*facts, subcommand, baseline.c.id.is_not(None).label("accepted"))
        .select_from(launch)
        .join(case, case.c.id == launch.c.case_id)
        .join(run, run.c.id == launch.c.run_id)
        .join(environment, environment.c.id == launch.c.environment_id)
        .outerjoin(
            series,
            and_(
                series.c.case_id == case.c.id,
                series.c.machine_key == environment.c.machine_key,
                series.c.metric == PRIMARY,
            ),
        )
        .outerjoin(baseline, and_(baseline.c.series_id == series.c.id, baseline.c.run_id == run.c.id))
        .where(case.c.uid.in_(case_uids), launch.c.launch == 0)
        .order_by(run.c.started_at, run.c.uid)
    )
    runs_of: dict[tuple[str, str], dict[str, Ran]] = {}
    for row in connection.execute(query):
        ran = Ran(row.subcommand, variables_of(row.doc), row.accepted)
        runs_of.setdefault((row.uid, row.machine_key), {})[row.run_uid] = ran
    return {
        (*of_series, list(runs)[place]): why
        for of_series, runs in runs_of.items()
        for place, why in experiments(list(runs.values())).items()
    }
