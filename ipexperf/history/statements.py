"""The larger SQL statements, in one place so that a test can check their query plans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import JSON, ColumnElement, Select, and_, exists, func, select, tuple_, type_coerce

from ipexperf.case import AXES
from ipexperf.history.records import Wanted
from ipexperf.history.rows import CASE
from ipexperf.history.schema import case, environment, launch, measurement, run, samples, series, verdict
from ipexperf.outcomes import without_numbers
from ipexperf.result import PRIMARY

NARROWING: dict[str, ColumnElement[Any]] = {
    "metric": series.c.metric,
    "machine": series.c.machine_key,
    **{name: case.c[name] for name in (*AXES, "test")},
}
"""The column of each filter of series."""
OF_CASE = [case.c[name] for name in (*CASE, "params")]
"""The columns from which `rows.case_of` makes a case."""
NEWEST_FIRST = (run.c.started_at.desc(), run.c.uid.desc())
"""The order of runs."""


def newest_verdict() -> ColumnElement[bool]:
    """The condition for the newest verdict of a series and run."""
    later = verdict.alias("later")
    return ~exists().where(
        later.c.series_id == verdict.c.series_id,
        later.c.run_id == verdict.c.run_id,
        tuple_(later.c.judged_at, later.c.policy_id) > tuple_(verdict.c.judged_at, verdict.c.policy_id),
    )


def work(case_uid: str, since: str) -> Select[Any]:
    """Select the floating point operations of a case's step, as text, in each run since a moment that has them."""
    operations = type_coerce(launch.c.doc, JSON)[("fingerprint", "structure", "flops")].as_string()
    return (
        select(run.c.uid, operations)
        .join(launch, launch.c.run_id == run.c.id)
        .join(case, case.c.id == launch.c.case_id)
        .where(case.c.uid == case_uid, run.c.started_at >= since, operations.is_not(None))
    )


def trend(
    *, limit: int | None = None, since: str | None = None, before: str | None = None, **filters: Wanted
) -> Select[Any]:
    """Select the points of every matching series, oldest first. `limit` keeps the newest runs of each series.

    A filter is one value or several. The range includes `since` and excludes `before`.
    """
    branch: ColumnElement[Any] = run.c.branch
    started_at: ColumnElement[Any] = run.c.started_at
    if filters.get("model") is not None:
        # A model has few series, but a branch has nearly every measurement: keep the planner from starting with runs.
        branch, started_at = func.coalesce(branch, ""), func.coalesce(started_at, "")
    columns = {**NARROWING, "branch": branch}
    narrowed = narrowed_by({columns[name]: value for name, value in filters.items()})
    if since is not None:
        narrowed.append(started_at >= since)
    if before is not None:
        narrowed.append(started_at < before)
    facts = (
        select(
            *(run.c[name] for name in ("started_at", "branch", "torch_version", "ipex_version")),
            run.c.uid.label("run_uid"),
            run.c.commit_sha.label("commit"),
            case.c.suite,
            *OF_CASE,
            case.c.uid.label("case_uid"),
            *(series.c[name] for name in ("machine_key", "metric", "unit", "higher_is_better")),
            *(measurement.c[name] for name in ("n", "median", "mean", "mad", "lo", "hi", "outcome", "reason")),
            verdict.c.outcome.label("verdict"),
            verdict.c.ratio,
        )
        .select_from(case)
        .join(series, series.c.case_id == case.c.id)
        .join(measurement, measurement.c.series_id == series.c.id)
        .join(run, run.c.id == measurement.c.run_id)
        .outerjoin(
            verdict,
            and_(
                verdict.c.series_id == measurement.c.series_id,
                verdict.c.run_id == measurement.c.run_id,
                newest_verdict(),
            ),
        )
        .where(*narrowed)
    )
    if limit is None:
        return facts.order_by(run.c.started_at, run.c.uid, series.c.id)
    age = func.row_number().over(partition_by=series.c.id, order_by=NEWEST_FIRST).label("age")
    ranked = facts.add_columns(age, series.c.id.label("series_id")).subquery()
    return (
        select(ranked).where(ranked.c.age <= limit).order_by(ranked.c.started_at, ranked.c.run_uid, ranked.c.series_id)
    )


def series_of(**filters: Wanted) -> Select[Any]:
    """Select every matching series with its case."""
    return (
        select(case, *(series.c[name] for name in ("machine_key", "metric", "unit", "higher_is_better")))
        .add_columns(series.c.id.label("series_id"))
        .join(series, series.c.case_id == case.c.id)
        .where(*narrowed_by({NARROWING[name]: value for name, value in filters.items()}))
    )


def facts(*names: str, **filters: Wanted) -> Select[Any]:
    """Select these columns of every measurement of the matching series.

    The table is ordered by series, so that others are never read.
    """
    wanted = series_of(**filters).with_only_columns(series.c.id)
    columns = (measurement.c[name] for name in ("series_id", "run_id", *names))
    return select(*columns).where(measurement.c.series_id.in_(wanted))


def rejected(first: int, **filters: Wanted) -> Select[Any]:
    """Select the cases of the matching series, by uid, and the runs from `first` on whose verdict has no numbers.

    A few series have few verdicts, and the verdicts of others are never read.
    """
    wanted = series_of(**filters).with_only_columns(series.c.id)
    return (
        select(case.c.uid, verdict.c.run_id)
        .join(series, series.c.id == verdict.c.series_id)
        .join(case, case.c.id == series.c.case_id)
        .where(verdict.c.series_id.in_(wanted), verdict.c.run_id >= first)
        .where(verdict.c.outcome.in_(without_numbers()), newest_verdict())
    )


def narrowed_by(narrowing: Mapping[ColumnElement[Any], Wanted]) -> list[ColumnElement[bool]]:
    """Yield the conditions of filters: each column has one of the given values. None means any."""
    return [
        column == value if isinstance(value, str) else column.in_(value)
        for column, value in narrowing.items()
        if value is not None
    ]


def samples_that_count() -> Select[Any]:
    """Select the samples of launches that were not contended, by case and launch."""
    its_launch = and_(
        launch.c.run_id == samples.c.run_id,
        launch.c.case_id == series.c.case_id,
        launch.c.launch == samples.c.launch,
    )
    return (
        select(series.c.case_id, samples.c.launch, samples.c.data)
        .select_from(samples)
        .join(series, series.c.id == samples.c.series_id)
        .join(launch, its_launch)
        .where(launch.c.outcome != "contended")
        .order_by(series.c.case_id, samples.c.launch)
    )


def runs() -> Select[Any]:
    """Select runs with their machine, newest first."""
    return (
        select(run, run.c.commit_sha.label("commit"), environment.c.machine_key)
        .join(environment, environment.c.id == run.c.environment_id)
        .order_by(*NEWEST_FIRST)
    )


def outcomes(run_ids: list[int]) -> Select[Any]:
    """Count the cases of each run by the outcome of their newest verdict, which is in the series of speed."""
    return (
        select(verdict.c.run_id, verdict.c.outcome, func.count())
        .join(series, series.c.id == verdict.c.series_id)
        .where(verdict.c.run_id.in_(run_ids), series.c.metric == PRIMARY, newest_verdict())
        .group_by(verdict.c.run_id, verdict.c.outcome)
        .order_by(verdict.c.run_id, verdict.c.outcome)
    )
