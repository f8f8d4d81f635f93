"""The medians of many series through time, for finding changes. Nothing else of the series is read."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ipexperf.case import Case
from ipexperf.history import statements
from ipexperf.history.rows import case_of
from ipexperf.history.schema import environment, measurement, run
from ipexperf.result import accuracies

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from ipexperf.history.records import Wanted


class Moment(NamedTuple):
    """A run: when it was, and of which commit. `number` is its row id."""

    number: int
    uid: str
    started_at: str
    commit: str | None
    machine_key: str


@dataclass(frozen=True, slots=True)
class Medians:
    """One metric of one case on one machine: the median of each good run, oldest first.

    A run is good if the case was measured and nothing was found wrong with it: not its proof, not its accuracy. The
    series of an accuracy also has the runs that the judge rejected, because they show that it changed.
    """

    case: Case
    machine_key: str
    metric: str
    unit: str
    higher_is_better: bool | None
    runs: list[Moment] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


def read(
    connection: Connection,
    metrics: Sequence[str],
    *,
    since: str | None = None,
    before: str | None = None,
    past: int = 0,
    without: Collection[tuple[str, int]] = (),
    branch: Wanted = None,
    **filters: Wanted,
) -> list[Medians]:
    """Return every matching series that has a run before `before`.

    With `since`, read only `past` runs of each machine before it, and all after it. Leave out the cases of runs in
    `without`, by uid and row id.
    """
    runs = _runs(connection, branch, since, before, past)
    if not runs:
        return []
    by_series: dict[int, Medians] = {}
    for row in connection.execute(statements.series_of(metric=metrics, **filters)).mappings():
        numbers = (row[name] for name in ("machine_key", "metric", "unit", "higher_is_better"))
        by_series[row["series_id"]] = Medians(case_of(row), *numbers)
    places = {moment.number: place for place, moment in enumerate(runs)}
    first = min(places)
    left_out: dict[str, set[int]] = defaultdict(set)
    for uid, number in without:
        left_out[uid].add(number)
    rejected: dict[str, set[int]] = defaultdict(set)
    for uid, number in connection.execute(statements.rejected(first, **filters)):
        rejected[uid].add(number)
    uncounted = {}
    for series_id, entry in by_series.items():
        uid = entry.case.uid
        uncounted[series_id] = left_out[uid] | (set() if entry.metric in accuracies() else rejected[uid])
    points: dict[int, list[tuple[int, float]]] = defaultdict(list)
    # Row ids follow time, except for merged runs, so most of the older part of a long history is not read.
    query = statements.facts("median", "outcome", metric=metrics, **filters).where(measurement.c.run_id >= first)
    for series_id, run_id, median, outcome in connection.execute(query).all():
        if run_id in places and run_id not in uncounted[series_id]:
            good = outcome == "ok" and median is not None and math.isfinite(median)
            points[series_id] += [(places[run_id], median)] if good else []
    for series_id, good_points in points.items():
        for place, median in sorted(good_points):
            by_series[series_id].runs.append(runs[place])
            by_series[series_id].values.append(median)
    return [by_series[series_id] for series_id in sorted(points)]


def _runs(connection: Connection, branch: Wanted, since: str | None, before: str | None, past: int) -> list[Moment]:
    """Select the runs to examine, oldest first."""
    columns = (run.c.id, run.c.uid, run.c.started_at, run.c.commit_sha, environment.c.machine_key)
    query = statements.runs().with_only_columns(*columns).where(*statements.narrowed_by({run.c.branch: branch}))
    if before is not None:
        query = query.where(run.c.started_at < before)
    moments = list(map(Moment._make, connection.execute(query).all()))
    if since is None:
        return moments[::-1]
    older: dict[str, int] = defaultdict(int)
    runs = []
    for moment in moments:
        if moment.started_at < since:
            older[moment.machine_key] += 1
        if older[moment.machine_key] <= past:
            runs.append(moment)
    return runs[::-1]
