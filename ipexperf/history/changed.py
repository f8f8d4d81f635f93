"""What regressed or improved: the change points of every series, each with the runs that bracket it."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipexperf.history.comparison import between
from ipexperf.history.records import Point
from ipexperf.history.rolling import series_of
from ipexperf.judge import changes as points_of_change
from ipexperf.result import METRICS

if TYPE_CHECKING:
    from ipexperf.history.store import History


@dataclass(frozen=True, slots=True)
class Changed:
    """One change of one series. `ratio` is the new level over the old; the levels are medians of `runs_*` runs.

    `last_*` is the newest run of the old level, and `first_*` the oldest of the new one: the cause lies between them.
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
    commits: str
    """What `git log` takes, or an empty text where both are one commit or one of them is unknown."""
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """Every change since a moment, how many series were looked into, and how many were too short for that."""

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
    """Find the changes of every matching series; those before `since` are found too, and left out."""
    history.check_begun()
    begin = history.span(since, until)["since"] or ""
    every: dict[tuple[str, str, str], list[Point]] = defaultdict(list)
    for metric in metrics:
        for point in history.trend(metric, until=until, **filters):
            every[series_of(point)].append(point)
    found: list[Changed] = []
    short = 0
    for points in every.values():
        good = [x for x in points if x.outcome == "ok" and x.median is not None and 0 < x.median < math.inf]
        short += len(good) < 2 * points_of_change.MINIMUM
        found += [
            _changed(history, good, change)
            for change in points_of_change.find([x.median for x in good if x.median is not None])
            if good[change.index].started_at >= begin
        ]
    order = {"regressed": 0, "changed": 1, "improved": 2}
    found.sort(key=lambda x: (order[x.direction], -abs(math.log(x.ratio)), x.case_id, x.metric))
    return Changes(tuple(found), len(every), short)


def _changed(history: History, points: Sequence[Point], change: points_of_change.Change) -> Changed:
    last, first = points[change.index - 1], points[change.index]
    metric = METRICS[first.metric]
    old = points[change.index - change.before : change.index]
    new = points[change.index : change.index + change.after]
    sides = [history.environment(point.run_uid, point.case_uid) for point in (last, first)]
    known = last.commit and first.commit and last.commit != first.commit
    return Changed(
        direction=change.direction(higher_is_better=metric.higher_is_better),
        case_id=first.case_id,
        **{name: getattr(first, name) for name in ("case_uid", "model", "device", "dtype", "mode", "stack", "batch")},
        machine_key=first.machine_key,
        metric=metric.name,
        unit=metric.unit,
        higher_is_better=metric.higher_is_better,
        ratio=change.ratio,
        score=change.score,
        before=_level(old),
        after=_level(new),
        runs_before=change.before,
        runs_after=change.after,
        last_run=last.run_uid,
        last_started_at=last.started_at,
        last_commit=last.commit,
        first_run=first.run_uid,
        first_started_at=first.started_at,
        first_commit=first.commit,
        commits=f"{last.commit}..{first.commit}" if known else "",
        differences=tuple(between(*sides)),
    )


def _level(points: Sequence[Point]) -> float:
    return statistics.median(x.median for x in points if x.median is not None)
