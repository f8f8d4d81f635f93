"""Series for a terminal: their points, their shape in one line, and their changes."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from rich.text import Text

from ipexperf.history.drawing import SHORT, human, moment, ratio, row, table
from ipexperf.history.rolling import series_of
from ipexperf.judge.changes import MINIMUM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from ipexperf.history.changed import Changed, Changes
    from ipexperf.history.records import Point

BARS = "▁▂▃▄▅▆▇█"
NO_NUMBER = "x"
MARGIN = 0.01
"""The vertical range covers at least this share of the level, so that small movements look flat."""


def trend_table(points: Sequence[Point], *, rolling: bool = False) -> Table:
    middle = ("median", "rolling") if rolling else ("median",)
    drawn = table(
        "case", "batch", "started (UTC)", "run", "commit", "torch", "IPEX", *middle, "lo", "hi", "n", "ratio", "outcome"
    )
    for point in _by_series(points):
        values = (point.median, point.rolling) if rolling else (point.median,)
        row(
            drawn,
            point.case_id,
            str(point.batch),
            moment(point.started_at),
            point.run_uid[:SHORT],
            (point.commit or "-")[:10],
            point.torch_version or "-",
            point.ipex_version or "-",
            *(human(value, point.unit) for value in (*values, point.lo, point.hi)),
            str(point.n),
            ratio(point.ratio),
            point.verdict or point.outcome,
        )
    return drawn


def spark_table(points: Sequence[Point]) -> Table:
    """Draw each series as one line of bars, oldest first. A run without a number is an `x`."""
    drawn = table("case", "batch", "machine", "runs", "shape", "lowest", "highest", "newest")
    every: dict[tuple[str, str, str], list[Point]] = defaultdict(list)
    for point in _by_series(points):
        every[series_of(point)].append(point)
    for series in every.values():
        values = [_number(point) for point in series]
        good = [value for value in values if value is not None]
        ends = (min(good), max(good), good[-1]) if good else (None, None, None)
        newest = series[-1]
        row(
            drawn,
            newest.case_id,
            str(newest.batch),
            newest.machine_key,
            str(len(series)),
            spark(values),
            *(human(value, newest.unit) for value in ends),
        )
    return drawn


def spark(values: Sequence[float | None]) -> str:
    """Draw numbers as bars between the smallest and the largest, on the log scale if all are above 0."""
    good = [value for value in values if value is not None]
    if not good:
        return NO_NUMBER * len(values)
    logs = min(good) > 0
    scale = math.log if logs else float
    low, high = scale(min(good)), scale(max(good))
    room = max(high - low, MARGIN if logs else MARGIN * max(abs(low), abs(high)))
    if not room:
        return "".join(NO_NUMBER if value is None else BARS[0] for value in values)
    return "".join(
        NO_NUMBER if value is None else BARS[min(len(BARS) - 1, int((scale(value) - low) / room * len(BARS)))]
        for value in values
    )


def changes_table(changed: Sequence[Changed]) -> Table:
    drawn = table(
        "change", "case", "batch", "metric", "before", "after", "ratio", "score", "runs", "last", "first", "known"
    )
    for one in changed:
        row(
            drawn,
            one.direction,
            one.case_id,
            str(one.batch),
            one.metric,
            human(one.before, one.unit),
            human(one.after, one.unit),
            ratio(one.ratio),
            f"{one.score:.1f}",
            f"{one.runs_before} -> {one.runs_after}",
            *(f"{moment(at)} {uid[:SHORT]}" for at, uid in _bracket(one)),
        )
    return drawn


def brackets_text(changed: Changes) -> Text:
    """Describe what differs between the runs around changes, once for all cases that changed there."""
    together: dict[tuple[str, str, str, tuple[str, ...]], list[Changed]] = defaultdict(list)
    for one in changed.changes:
        together[one.last_run, one.first_run, one.likely_run, one.differences].append(one)
    lines = []
    for (last, first, likely, differences), same in together.items():
        cases = ", ".join(dict.fromkeys(one.case_id for one in same))
        vague = f" (95 % sure, most likely with {likely[:SHORT]})" if same[0].between > 1 else ""
        lines.append(f"between {last[:SHORT]} and {first[:SHORT]}{vague}: {cases}")
        commits = same[0].commits
        lines += [f"    commits  {commits}"] if commits else []
        others = [line for line in differences if not line.startswith("commit: ")]
        others = others or ([] if commits else ["nothing that is recorded of the environment"])
        lines += [f"    {'' if index else 'differs':8} {line}" for index, line in enumerate(others)]
    short = f"; {changed.short} too short: fewer than {2 * MINIMUM} good runs" if changed.short else ""
    word = "change" if len(changed.changes) == 1 else "changes"
    lines.append(f"{len(changed.changes)} {word} in {changed.series} series{short}")
    return Text("\n".join(lines))


def _bracket(one: Changed) -> tuple[tuple[str, str], ...]:
    """The runs around a change, and the one with which it became known."""
    return (
        (one.last_started_at, one.last_run),
        (one.first_started_at, one.first_run),
        (one.known_started_at, one.known_run),
    )


def _by_series(points: Sequence[Point]) -> list[Point]:
    return sorted(points, key=lambda point: (point.case_id, point.machine_key, point.case_uid))


def _number(point: Point) -> float | None:
    if point.outcome != "ok":
        return None  # an invalid run has a number, but it does not count
    return point.rolling if point.rolling is not None else point.median
