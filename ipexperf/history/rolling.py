"""The rolling median of series, and their newest points."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import replace

from ipexperf.history.records import Point


def roll(points: Sequence[Point], width: int | None, limit: int | None) -> list[Point]:
    """Add the median of the last `width` good runs to each point, and keep the newest `limit` points of each series.

    Failed runs get no median and are skipped in those of later runs.
    """
    if width is None:
        return [*points]
    last: dict[tuple[str, str, str], deque[float]] = defaultdict(lambda: deque(maxlen=width))
    left = Counter(point.series for point in points)
    newest = []
    for point in points:
        median = None
        if point.outcome == "ok" and point.median is not None:
            recent = last[point.series]
            recent.append(point.median)
            median = statistics.median(recent) if len(recent) == width else None
        if limit is None or left[point.series] <= limit:
            newest.append(replace(point, rolling=median))
        left[point.series] -= 1
    return newest
