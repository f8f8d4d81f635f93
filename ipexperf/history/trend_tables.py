"""Series for a terminal: their points, their shape in one line, and their changes."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from rich.text import Text

from ipexperf.history.drawing import SHORT, human, moment, ratio, row, table
from ipexperf.judge import structure
from ipexperf.judge.levels import MINIMUM

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from rich.table import Table

    from ipexperf.history.changed import Changed, Changes
    from ipexperf.history.records import Point
    from ipexperf.history.store import History

BARS = "▁▂▃▄▅▆▇█"
NO_NUMBER = "x"
MARGIN = 0.01
"""The vertical range covers at least this share of the level, so that small movements look flat."""


def series_tables(points: Sequence[Point], *, rolling: bool = False) -> Iterator[tuple[Text, Table]]:
    """One table for each series, and the line above it that says whose it is."""
    for _, series in groupby(_by_series(points), key=lambda point: point.series):
        ours = list(series)
        newest = ours[-1]
        name = Text(f"{newest.case_id}, batch {newest.batch}, {newest.metric} on {newest.machine_key}")
        yield name, _one(ours, rolling=rolling)


def _one(points: Iterable[Point], *, rolling: bool) -> Table:
    middle = ("median", "rolling") if rolling else ("median",)
    names = ("started (UTC)", "run", "commit", "torch", "IPEX", *middle, "lo", "hi", "n", "ratio", "outcome")
    drawn = table(*names, spare=("n", "lo, hi", "IPEX", "torch", "commit", "run"))
    for point in points:
        values = (point.median, point.rolling) if rolling else (point.median,)
        row(
            drawn,
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


def spark_table(points: Sequence[Point], tried: Collection[tuple[str, str, str]] = ()) -> Table:
    """Draw each series as one line of bars, oldest first. A run without a number is an `x`.

    `tried` are experiments, by case, machine and run: none of them is the newest of its series.
    """
    names = ("case", "batch", "machine", "runs", "shape", "lowest", "highest", "newest")
    drawn = table(*names, spare=("machine", "runs", "batch", "lowest, highest"))
    every: dict[tuple[str, str, str], list[Point]] = defaultdict(list)
    for point in _by_series(points):
        every[point.series].append(point)
    for series in every.values():
        values = [_number(point) for point in series]
        good = [value for value in values if value is not None]
        usual = [x for x in series if (x.case_uid, x.machine_key, x.run_uid) not in tried]
        now = [value for point in usual or series if (value := _number(point)) is not None]
        ends = (min(good), max(good), now[-1] if now else None) if good else (None, None, None)
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


def work_text(history: History, points: Sequence[Point]) -> Text:
    """Name the runs from which on a case did other work: a level there says nothing of software."""
    by_series: dict[tuple[str, str, str], list[Point]] = defaultdict(list)
    for point in _by_series(points):
        by_series[point.series].append(point)
    lines = []
    for series in by_series.values():
        work = history.work(series[0].case_uid, series[0].started_at)
        known = [(point, work[point.run_uid]) for point in series if point.run_uid in work]
        for (_, before), (point, after) in pairwise(known):
            if text := structure.other_operations(before, after):
                lines.append(f"{point.case_id}: since {moment(point.started_at)} {point.run_uid[:SHORT]} {text}")
    return Text("\n".join(lines))


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
    names = ("case", "change", "batch", "metric", "before", "after", "ratio", "score", "runs", "last", "first", "known")
    drawn = table(*names, spare=("score", "known", "batch", "runs", "before, after", "metric", "last, first"))
    for change in changed:
        row(
            drawn,
            change.case_id,
            change_word(change),
            str(change.batch),
            change.metric,
            human(change.before, change.unit),
            human(change.after, change.unit),
            ratio(change.ratio),
            f"{change.score:.1f}",
            _runs(change),
            f"{moment(change.last_started_at)} {change.last_run[:SHORT]}",
            f"{moment(change.first_started_at)} {change.first_run[:SHORT]}",
            f"{moment(change.known_started_at)} {change.known_run[:SHORT]}",
        )
    return drawn


def change_word(change: Changed) -> str:
    """Name a change: its direction, or what it is instead of a step."""
    if change.kind == "bistable":
        return "bistable"
    if change.kind == "drift":
        return f"drift, {change.direction}"
    return change.direction if change.recovered_run is None else "recovered"


def _runs(change: Changed) -> str:
    """The runs of both levels; of a drift all of them, which have no level."""
    if change.kind == "drift":
        return str(change.runs_after)
    sign = "<->" if change.kind == "bistable" else "->"
    return f"{change.runs_before} {sign} {change.runs_after}"


def brackets_text(changed: Changes) -> Text:
    """Describe what differs between the runs around changes, once for all cases that changed there."""
    together: dict[tuple[str, str, str, tuple[str, ...]], list[Changed]] = defaultdict(list)
    lines, plain = [], 0
    for change in changed.changes:
        if change.kind != "step":
            lines.append(_unsteady(change))
        elif change.commits or change.differences:
            together[change.last_run, change.first_run, change.likely_run, change.differences].append(change)
        else:
            plain += 1
        if change.recovered_run is not None and change.recovered_started_at is not None:
            when = moment(change.recovered_started_at)
            lines.append(
                f"{change.case_id}, {change.metric}: back at its level since {when} {change.recovered_run[:SHORT]}"
            )
    for (last, first, likely, differences), same in together.items():
        cases = ", ".join(dict.fromkeys(change.case_id for change in same))
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


def _unsteady(change: Changed) -> str:
    """Say what a drift or two modes are, as there is no run to blame for them."""
    name = f"{change.case_id}, {change.metric}"
    if change.kind == "bistable":
        modes = f"{human(change.before, change.unit)} and {human(change.after, change.unit)}"
        return f"{name}: two modes, {modes}, with {change.switches} switches between them: no run is to blame"
    each = f", {change.ratio ** (1 / (change.runs_after - 1)) - 1:+.2%} a run" if change.ratio else ""
    before, after = human(change.before, change.unit), human(change.after, change.unit)
    return f"{name}: drifts from {before} to {after}{each}: no run is to blame"


def _by_series(points: Sequence[Point]) -> list[Point]:
    return sorted(points, key=lambda point: (point.case_id, point.machine_key, point.case_uid))


def _number(point: Point) -> float | None:
    if point.outcome != "ok":
        return None  # an invalid run has a number, but it does not count
    return point.rolling if point.rolling is not None else point.median
