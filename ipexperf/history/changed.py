"""Regressions and improvements: the change points of every series, with the runs before and after each."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ipexperf.history import medians
from ipexperf.history.comparison import between
from ipexperf.history.medians import Medians
from ipexperf.history.query import known_metric
from ipexperf.history.records import of_case
from ipexperf.history.store import History
from ipexperf.judge import changes as points_of_change
from ipexperf.judge.changes import ChangePoint, Course
from ipexperf.judge.levels import MINIMUM
from ipexperf.proof import structure

PAST = 365
"""Number of runs of each machine before `since` that establish the level before it."""


@dataclass(frozen=True, slots=True)
class Changed:
    """One change of one series. `ratio` is the new level over the old; `runs_*` are the runs of a level.

    `last_*` is the newest run that surely had the old level, `first_*` the oldest that surely had the new. The cause
    lies between them, with a confidence of 95 %. `likely_*` is the run with which the new level most likely began,
    `known_*` the run with which a change could first be reported.

    A regression that the next step undid has `recovered_*`: the oldest run that surely had the level of before again.
    """

    direction: str
    case_id: str
    case_uid: str
    model: str | None
    device: str
    dtype: str | None
    mode: str | None
    stack: str | None
    batch: int | None
    machine_key: str
    metric: str
    unit: str
    higher_is_better: bool | None
    ratio: float | None
    """None if the old level is 0, or one is below."""
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
    recovered_run: str | None
    recovered_started_at: str | None
    commits: str
    """The commit range for `git log`, or an empty text if the commits are equal or one is unknown."""
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes that became known since a moment, and how many series were examined."""

    changes: tuple[Changed, ...]
    series: int
    short: int
    """Series with too few runs."""
    unsteady: int
    """Series that drift or go to and fro, where no run is to blame."""


class Event(NamedTuple):
    """A change and, if it is a regression that the next step undid, that step."""

    change: ChangePoint
    recovery: ChangePoint | None = None


class Examined(NamedTuple):
    """One series and its course."""

    series: Medians
    course: Course

    def events(self) -> Iterable[Event]:
        """Return the changes, with a regression and its recovery as one."""
        changes = iter(self.course.changes)
        change = next(changes, None)
        while change is not None:
            later = next(changes, None)
            regressed = change.direction(higher_is_better=self.series.higher_is_better) == "regressed"
            if regressed and later is not None and change.undone_by(later):
                yield Event(change, later)
                later = next(changes, None)
            else:
                yield Event(change)
            change = later


def examine(
    history: History,
    metrics: Sequence[str],
    *,
    since: str | None = None,
    before: str | None = None,
    without: Collection[tuple[str, int]] = (),
    **filters: Any,
) -> list[Examined]:
    """Read every matching series, with PAST runs of each machine before `since`, and find its course.

    `without` names cases of runs that are left out, by uid and row id.
    """
    with history.reading() as connection:
        every = medians.read(connection, metrics, since=since, before=before, past=PAST, without=without, **filters)
    courses = points_of_change.courses([series.values for series in every])
    return [Examined(series, course) for series, course in zip(every, courses, strict=True)]


def changes(
    history: History,
    metrics: Sequence[str],
    *,
    since: str | None = None,
    until: str | None = None,
    **filters: Any,
) -> Changes:
    """Find the changes of every matching series that could first be reported since a moment.

    Some runs before it are examined too. Regressions that last come first, the latest on top.
    """
    history.check_begun()
    span = history.span(since, until)
    for metric in metrics:
        known_metric(metric)
    within = {"since": span["since"], "before": span["before"], **filters}
    examined = examine(history, metrics, **within)
    if tried := _experiments(history, examined):
        examined = examine(history, metrics, without=tried, **within)
    changed = [
        _changed(history, entry.series, event)
        for entry in examined
        for event in entry.events()
        if entry.series.runs[(event.recovery or event.change).known_run].started_at >= (span["since"] or "")
    ]
    short = sum(len(entry.series.values) < 2 * MINIMUM for entry in examined)
    unsteady = sum(entry.course.unsteady for entry in examined)
    changed.sort(key=lambda change: (change.case_id, change.metric))
    changed.sort(key=lambda change: abs(math.log(change.ratio)) if change.ratio else math.inf, reverse=True)
    changed.sort(key=lambda change: change.likely_started_at, reverse=True)
    changed.sort(key=_urgency)
    return Changes(tuple(changed), len(examined), short, unsteady)


def _experiments(history: History, examined: Sequence[Examined]) -> set[tuple[str, int]]:
    """The runs of series with a change that were experiments, by uid of the case and row id."""
    moved = [(entry.series.case.uid, entry.series) for entry in examined if entry.course.changes]
    tried = history.experiments({uid for uid, _ in moved}) if moved else {}
    return {
        (uid, run.number) for uid, series in moved for run in series.runs if (uid, series.machine_key, run.uid) in tried
    }


def _urgency(change: Changed) -> int:
    """The rank of a change in a list. Regressions that last are first."""
    if change.direction == "regressed":
        return 0 if change.recovered_run is None else 2
    return {"changed": 1, "improved": 3}[change.direction]


def _changed(history: History, series: Medians, event: Event) -> Changed:
    change, recovery = event
    last, first, likely = series.runs[change.earliest - 1], series.runs[change.latest], series.runs[change.index]
    known_at = series.runs[change.known_run]
    sides = [history.environment(run.uid, series.case.uid) for run in (last, first)]
    commits_differ = last.commit and first.commit and last.commit != first.commit
    work = history.work(series.case.uid, last.started_at)
    other = structure.other_operations(work.get(last.uid), work.get(first.uid))  # a network changed under its name
    back = series.runs[recovery.latest] if recovery else None
    return Changed(
        direction=change.direction(higher_is_better=series.higher_is_better),
        **of_case(series.case),
        **{name: getattr(series, name) for name in ("machine_key", "metric", "unit", "higher_is_better")},
        ratio=change.ratio,
        score=change.score,
        before=change.old,
        after=change.new,
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
        known_run=known_at.uid,
        known_started_at=known_at.started_at,
        recovered_run=back.uid if back else None,
        recovered_started_at=back.started_at if back else None,
        commits=f"{last.commit}..{first.commit}" if commits_differ else "",
        differences=(*filter(None, [other]), *between(*sides)),
    )
