"""Regressions and improvements: the change points of every series, with the runs before and after each."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipexperf.history import medians
from ipexperf.history.comparison import between
from ipexperf.history.database import reading
from ipexperf.history.query import check_metric
from ipexperf.judge import changes as points_of_change

if TYPE_CHECKING:
    from ipexperf.history.medians import Medians, Moment
    from ipexperf.history.store import History


PAST = 365
"""Number of runs of each machine before `since` that establish the level before it."""


@dataclass(frozen=True, slots=True)
class Changed:
    """One change of one series. `ratio` is the new level over the old; `runs_*` are the runs of a level.

    `last_*` is the newest run that surely had the old level, `first_*` the oldest that surely had the new. The cause
    lies between them, with a confidence of 95 %. `likely_*` is the run with which the new level most likely began, and
    `known_*` the one with which the change could first be reported: a level needs some runs to be one.
    """

    direction: str
    case_id: str
    case_uid: str
    model: str
    device: str
    dtype: str
    mode: str
    stack: str
    batch: int
    machine_key: str
    metric: str
    unit: str
    higher_is_better: bool | None
    ratio: float
    score: float
    before: float
    after: float
    runs_before: int
    runs_after: int
    last_run: str
    last_started_at: str
    last_commit: str | None
    first_run: str
    first_started_at: str
    first_commit: str | None
    between: int
    """The number of steps from run to run, between `last_run` and `first_run`, at which the level may have moved."""
    likely_run: str
    likely_started_at: str
    known_run: str
    known_started_at: str
    commits: str
    """The commit range for `git log`, or an empty text if the commits are equal or one is unknown."""
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes that became known since a moment, how many series were examined, and how many were too short."""

    changes: tuple[Changed, ...]
    series: int
    short: int


def changes(
    history: History,
    metrics: Sequence[str],
    *,
    since: str | None = None,
    until: str | None = None,
    **filters: Any,
) -> Changes:
    """Find the changes of every matching series that could first be reported since a moment.

    Some runs before it are examined too. Regressions come first, the latest on top.
    """
    history.check_begun()
    span = history.span(since, until)
    for metric in metrics:
        check_metric(metric)
    with reading(history._engine, history._name) as connection:  # noqa: SLF001 - private to this package
        every = medians.read(connection, metrics, **span, past=PAST, **filters)
    changed = [
        _changed(history, one, change)
        for one, moved in zip(every, points_of_change.find_each([one.values for one in every]), strict=True)
        for change in moved
        if _known(one, change).started_at >= (span["since"] or "")
    ]
    short = sum(len(one.values) < 2 * points_of_change.MINIMUM for one in every)
    order = {"regressed": 0, "changed": 1, "improved": 2}
    changed.sort(key=lambda x: (-abs(math.log(x.ratio)), x.case_id, x.metric))
    changed.sort(key=lambda x: x.likely_started_at, reverse=True)
    changed.sort(key=lambda x: order[x.direction])
    return Changes(tuple(changed), len(every), short)


def _known(one: Medians, change: points_of_change.Change) -> Moment:
    """The run with which a change could first be reported."""
    return one.runs[change.index + points_of_change.MINIMUM - 1]


def _changed(history: History, one: Medians, change: points_of_change.Change) -> Changed:
    last, first, likely = one.runs[change.earliest - 1], one.runs[change.latest], one.runs[change.index]
    sides = [history.environment(run.uid, one.case.uid) for run in (last, first)]
    commits_differ = last.commit and first.commit and last.commit != first.commit
    return Changed(
        direction=change.direction(higher_is_better=one.higher_is_better),
        case_id=one.case.id,
        case_uid=one.case.uid,
        **{name: getattr(one.case, name) for name in ("model", "device", "dtype", "mode", "stack", "batch")},
        **{name: getattr(one, name) for name in ("machine_key", "metric", "unit", "higher_is_better")},
        ratio=change.ratio,
        score=change.score,
        before=statistics.median(one.values[change.index - change.before : change.index]),
        after=statistics.median(one.values[change.index : change.index + change.after]),
        runs_before=change.before,
        runs_after=change.after,
        last_run=last.uid,
        last_started_at=last.started_at,
        last_commit=last.commit,
        first_run=first.uid,
        first_started_at=first.started_at,
        first_commit=first.commit,
        between=change.latest - change.earliest + 1,
        likely_run=likely.uid,
        likely_started_at=likely.started_at,
        known_run=_known(one, change).uid,
        known_started_at=_known(one, change).started_at,
        commits=f"{last.commit}..{first.commit}" if commits_differ else "",
        differences=tuple(between(*sides)),
    )
