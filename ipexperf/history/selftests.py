"""Trials of selftests. Each is committed when it ends, and belongs to no run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select

from ipexperf.history import rows, store
from ipexperf.history.database import reading, writing
from ipexperf.history.rows import case_of
from ipexperf.history.schema import case, environment, policy, selftest
from ipexperf.history.statements import OF_CASE
from ipexperf.history.values import content_uid, finite, utc
from ipexperf.judge.selftest import Trial

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import RowMapping

    from ipexperf.history.store import History
    from ipexperf.judge.policy import PairPolicy

SAME = ("injection", "size", "seconds", "outcome", "reason", "ratio", "lo", "hi", "mde", "cut")
"""Fields that have the same name in a row and in a trial."""


def record(
    history: History, session: str, trial: Trial, described: Mapping[str, Any], judged_by: PairPolicy, suite: str
) -> None:
    """Commit one trial of a selftest session, with its environment and policy."""
    times = {name: utc(getattr(trial, name)) for name in ("started_at", "finished_at")}
    values = finite({name: getattr(trial, name) for name in SAME} | {"log_ratios": trial.log_ratios}) | times
    constants = {"uid": content_uid(judged_by.to_json()), "doc": judged_by.to_json()}
    with writing(history._engine, history._name) as connection:  # noqa: SLF001 - this is the history's own room
        values["environment_id"] = store.environment_of(connection, described)
        values["case_id"] = store.identify(connection, case, rows.case_row(trial.case, suite))
        values["policy_id"] = store.identify(connection, policy, constants)
        uid = content_uid([session, trial.case.uid, trial.injection, times])
        connection.execute(insert(selftest).values(uid=uid, session=session, **values))


def trials(history: History, machine_key: str | None = None, judged_by: PairPolicy | None = None) -> list[Trial]:
    """Return all recorded trials, oldest first, optionally of one machine or policy."""
    query = (
        select(selftest, *OF_CASE)
        .join(case, case.c.id == selftest.c.case_id)
        .join(environment, environment.c.id == selftest.c.environment_id)
        .join(policy, policy.c.id == selftest.c.policy_id)
        .order_by(selftest.c.started_at, selftest.c.uid)
    )
    if machine_key is not None:
        query = query.where(environment.c.machine_key == machine_key)
    if judged_by is not None:
        query = query.where(policy.c.uid == content_uid(judged_by.to_json()))
    with reading(history._engine, history._name) as connection:  # noqa: SLF001 - this is the history's own room
        return [_trial(row) for row in connection.execute(query).mappings()]


def _trial(row: RowMapping) -> Trial:
    fields = {name: row[name] for name in (*SAME, "started_at", "finished_at")}
    ratios = (math.nan if value is None else value for value in row["log_ratios"])
    return Trial(case=case_of(row), log_ratios=tuple(ratios), **fields)
