"""Series for a terminal: their points, their shape in one line, and their changes."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from rich.text import Text

from ipexperf.history.drawing import SHORT, human, moment, ratio, row, table
from ipexperf.history.rolling import series_of
from ipexperf.judge.levels import MINIMUM

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
            change_word(one),
            one.case_id,
            str(one.batch),
            one.metric,
            human(one.before, one.unit),
            human(one.after, one.unit),
            ratio(one.ratio),
            f"{one.score:.1f}",
            _runs(one),
            *(f"{moment(at)} {uid[:SHORT]}" for at, uid in _bracket(one)),
        )
    return drawn


def change_word(one: Changed) -> str:
    """Name a change: its direction, or what it is instead of a step."""
    if one.kind == "bistable":
        return "bistable"
    if one.kind == "drift":
        return f"drift, {one.direction}"
    return one.direction if one.recovered_run is None else "recovered"


def _runs(one: Changed) -> str:
    """The runs of both levels; of a drift all of them, which have no level."""
    if one.kind == "drift":
        return str(one.runs_after)
    sign = "<->" if one.kind == "bistable" else "->"
    return f"{one.runs_before} {sign} {one.runs_after}"


def brackets_text(changed: Changes) -> Text:
    """Describe what differs between the runs around changes, once for all cases that changed there."""
    together: dict[tuple[str, str, str, tuple[str, ...]], list[Changed]] = defaultdict(list)
    lines, plain = [], 0
    for one in changed.changes:
        if one.kind != "step":
            lines.append(_unsteady(one))
        elif one.commits or one.differences:
            together[one.last_run, one.first_run, one.likely_run, one.differences].append(one)
        else:
            plain += 1
        if one.recovered_run is not None and one.recovered_started_at is not None:
            when = moment(one.recovered_started_at)
            lines.append(f"{one.case_id}, {one.metric}: back at its level since {when} {one.recovered_run[:SHORT]}")
    for (last, first, likely, differences), same in together.items():
        cases = ", ".join(dict.fromkeys(one.case_id for one in same))
        vague = f" (95 % sure, most likely with {likely[:SHORT]})" if same[0].between > 1 else ""
        lines.append(f"between {last[:SHORT]} and {first[:SHORT]}{vague}: {cases}")
        commits = same[0].commits
        lines += [f"    commits  {commits}"] if commits else []
        others = [line for line in differences if not line.startswith("commit: ")]
        lines += [f"    {'' if index else 'differs':8} {line}" for index, line in enumerate(others)]
    if plain:
        word = "1 step" if plain == 1 else f"{plain} steps"
        lines.append(f"{word}: nothing that is recorded of the environment differs between last and first")
    short = f"; {changed.short} too short: fewer than {2 * MINIMUM} good runs" if changed.short else ""
    word = "change" if len(changed.changes) == 1 else "changes"
    lines.append(f"{len(changed.changes)} {word} in {changed.series} series{short}")
    return Text("\n".join(lines))


def _unsteady(one: Changed) -> str:
    """Say what a drift or two modes are, as there is no run to blame for them."""
    name = f"{one.case_id}, {one.metric}"
    if one.kind == "bistable":
        modes = f"{human(one.before, one.unit)} and {human(one.after, one.unit)}"
        return f"{name}: two modes, {modes}, with {one.switches} switches between them: no run is to blame"
    each = f", {one.ratio ** (1 / (one.runs_after - 1)) - 1:+.2%} a run" if one.ratio else ""
    return (
        f"{name}: drifts from {human(one.before, one.unit)} to {human(one.after, one.unit)}{each}: no run is to blame"
    )


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
