"""The runs that a window can consist of, newest first. Pages are read only as far back as the caller iterates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, and_, exists, func, or_, select

from ipexperf.history import statements
from ipexperf.history.database import reading
from ipexperf.history.schema import environment, launch, measurement, run, series, verdict
from ipexperf.outcomes import without_numbers

if TYPE_CHECKING:
    from sqlalchemy import Engine

PAGE = 50
"""Runs per page: more than a whole window, if few of a case's runs are left out."""


@dataclass(frozen=True, slots=True)
class PastRun:
    """One run of a case without its numbers: its environment, and whether its verdict leaves it usable."""

    uid: str
    started_at: str
    spoilt: bool
    environment: Mapping[str, Any]


def read(
    engine: Engine, name: str, uid: str, *, branch: str | None, before: str | None, launches: int
) -> Iterator[PastRun]:
    """Yield the runs in which a series has at least this many good launches."""
    after: tuple[str, str] | None = None
    while True:
        query = page(uid, branch=branch, before=before, launches=launches, after=after)
        with reading(engine, name) as connection:
            runs = connection.execute(query).all()
            wanted = {row.environment_id for row in runs}
            rows = connection.execute(select(environment.c.id, environment.c.doc).where(environment.c.id.in_(wanted)))
            documents = {row.id: row.doc for row in rows}
        for row in runs:
            yield PastRun(row.uid, row.started_at, bool(row.spoilt), documents[row.environment_id])
        if len(runs) < PAGE:
            return
        after = (runs[-1].started_at, runs[-1].uid)


def page(
    uid: str, *, branch: str | None, before: str | None, launches: int, after: tuple[str, str] | None = None
) -> Select[Any]:
    """Select a page of runs: the newest, or those before a run, given by its start and uid."""
    query = (
        select(run.c.uid, run.c.started_at, run.c.id, run.c.environment_id, series.c.case_id)
        .select_from(series)
        .join(measurement, measurement.c.series_id == series.c.id)
        .join(run, run.c.id == measurement.c.run_id)
        .where(series.c.uid == uid, measurement.c.outcome == "ok", measurement.c.n >= launches)
        .order_by(*statements.NEWEST_FIRST)
        .limit(PAGE)
    )
    if branch is not None:
        query = query.where(run.c.branch == branch)
    if before is not None:
        query = query.where(run.c.started_at < before)
    if after is not None:
        # By name, not by offset: a run that is recorded meanwhile would shift every offset.
        started_at, last = after
        older = and_(run.c.started_at == started_at, run.c.uid < last)
        query = query.where(or_(run.c.started_at < started_at, older))
    # The rest is looked up for this page only, not for every run of the series.
    past = query.subquery("page").c
    first = (
        select(launch.c.environment_id)
        .where(launch.c.run_id == past.id, launch.c.case_id == past.case_id)
        .order_by(launch.c.launch)
        .limit(1)
        .scalar_subquery()
    )
    spoilt = exists().where(
        verdict.c.run_id == past.id,
        verdict.c.series_id == series.c.id,
        series.c.case_id == past.case_id,
        verdict.c.outcome.in_(without_numbers()),
        statements.newest_verdict(),
    )
    return select(
        past.uid,
        past.started_at,
        spoilt.label("spoilt"),
        func.coalesce(first, past.environment_id).label("environment_id"),
    ).order_by(past.started_at.desc(), past.uid.desc())
