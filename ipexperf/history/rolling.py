"""The rolling median of series, and their newest points."""

from __future__ import annotations

import statistics
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import replace

from ipexperf.history.records import Point


def series_of(point: Point) -> tuple[str, str, str]:
    """Return a key for the series of a point."""
    return point.case_uid, point.machine_key, point.metric


def roll(points: Sequence[Point], width: int | None, limit: int | None) -> list[Point]:
    """Add the median of the last `width` good runs to each point, and keep the newest `limit` points of each series.

    Failed runs get no median and are skipped in those of later runs.
    """
    if width is None:
        return [*points]
    last: dict[tuple[str, str, str], deque[float]] = defaultdict(lambda: deque(maxlen=width))
    left: dict[tuple[str, str, str], int] = defaultdict(int)
    rolled = []
    for point in points:
        left[series_of(point)] += 1
        if point.outcome == "ok" and point.median is not None:
            recent = last[series_of(point)]
            recent.append(point.median)
            if len(recent) == width:
                point = replace(point, rolling=statistics.median(recent))  # noqa: PLW2901 - the same point with its median
        rolled.append(point)
    newest = []
    for point in rolled:
        if limit is None or left[series_of(point)] <= limit:
            newest.append(point)
        left[series_of(point)] -= 1
    return newest
