"""Data for the scripts of a page: short numbers, in columns, with None for missing values."""

from __future__ import annotations

import math
import os
import shlex
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ipexperf import units
from ipexperf.dashboard.change_marks import Mark
from ipexperf.dashboard.story import CaseStory, Story, drawn
from ipexperf.history.board import Line, Spot
from ipexperf.history.records import Recorded
from ipexperf.judge.sentence import sentence
from ipexperf.outcomes import place
from ipexperf.outcomes import row as row_of
from ipexperf.result import METRICS, PRIMARY, accuracies
from ipexperf.verdict import Verdict

OURS = "ipexperf"
"""The first word of a run's command, unless pytest ran it."""
DIGITS = 5
"""Significant digits of a number on a page: more than a chart can show."""
SPARK = 32
"""Number of newest runs in the small chart beside a case in a table."""


def short(value: float | None) -> float | None:
    """Round a number to the digits that a page needs. None if it is not finite."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{DIGITS}g}")


def formatted(metric: str, value: float | None) -> str:
    """Format a number for people."""
    return "-" if value is None else units.amount(value, METRICS[metric].unit)


def moment(text: str) -> str:
    """Format a time for people, in UTC, to the minute."""
    return f"{text[:10]} {text[11:16]}"


def own_command(meta: Mapping[str, Any]) -> str:
    """Return the command that a run was started by, or an empty text if it is not known."""
    words = [str(word) for word in meta.get("command") or ()]
    return shlex.join(words if words[:1] == [OURS] else ["pytest", *words]) if words else ""


def trends(line: Line) -> dict[str, dict[str, Any]]:
    """Return the step time with its launches, the other drawn metrics and the accuracy through time, in columns."""
    right = next(
        (name for name in accuracies() if any(spot.median is not None for spot in line.spots.get(name, ()))), ""
    )
    spots = line.spots[PRIMARY]
    names = [name for name in (*drawn(), right) if line.spots.get(name)]
    tables = {name: {"unit": METRICS[name].unit, **columns(line.spots[name])} for name in names}
    if any(spot.n > 1 for spot in spots):
        ends = {"lo": [short(spot.lo) for spot in spots], "hi": [short(spot.hi) for spot in spots]}
        tables[PRIMARY] |= {**ends, "n": once([spot.n for spot in spots])}
    for name in names:
        if name != PRIMARY and tables[name]["run"] == tables[PRIMARY]["run"]:
            del tables[name]["run"]  # the same runs, stored once
    return tables


def columns(spots: Sequence[Spot]) -> dict[str, Any]:
    """Return the points of one metric in columns: runs, numbers, and outcomes if any is not ok."""
    outcomes = [spot.outcome for spot in spots]
    columns_of_outcomes = {"outcome": outcomes} if set(outcomes) != {"ok"} else {}
    return {
        "run": [spot.run for spot in spots],
        "median": [short(spot.median) for spot in spots],
        **columns_of_outcomes,
    }


def once(values: Sequence[Any]) -> Any:
    """Return the values, or a single value if all are equal."""
    return values[0] if len(set(values)) == 1 else list(values)


def steps(spots: Sequence[Spot]) -> list[float | None]:
    """Return step times, oldest first. Runs that do not count have None."""
    return [short(spot.median) if spot.outcome == "ok" else None for spot in spots]


def spark(line: Line) -> dict[str, Any]:
    """Return the newest step times over the newest baseline, or their median, and which of them were found worse."""
    spots = line.usual[-SPARK:]
    verdicts = [line.verdicts.get(spot.run) for spot in spots]
    known = [value for value in steps(spots) if value]
    baselines = (verdict.baseline for verdict in reversed(verdicts) if verdict and verdict.baseline)
    base = next(baselines, statistics.median(known) if known else 1.0)
    red = [index for index, verdict in enumerate(verdicts) if verdict and row_of(verdict.outcome).fails]
    return {"spark": [value and short(value / base) for value in steps(spots)], "red": red or None}


def moved(mark: Mark, entry: CaseStory) -> tuple[str, list[str]]:
    """Return how far something moved, and both levels: of the time, or of the metric that failed in its place.

    A verdict that still holds says it as everywhere else: with the numbers of the newest run.
    """
    verdict = entry.found(mark)
    if verdict and mark.worse and (found := instead(verdict)):
        return found
    ratio, before, after = mark.ratio, mark.before, mark.after
    if verdict and verdict.times and entry.now.median:
        ratio, before, after = verdict.times, entry.now.median / verdict.times, entry.now.median
    times = [formatted(PRIMARY, value) for value in (before, after) if value is not None]
    return units.percent(ratio) if ratio else "", times


def instead(verdict: Verdict) -> tuple[str, list[str]] | None:
    """Return how far the metric moved that failed in place of the time, and both levels, if that is so."""
    for other in () if verdict.slower else verdict.others:
        if row_of(other.outcome).fails and other.times and other.level:
            levels = [formatted(other.metric, value) for value in (other.level.before, other.level.now)]
            return f"{other.metric.replace('_', ' ')} {units.percent(other.times)}", levels
    return None


def right(recorded: Recorded) -> str | None:
    """Return the metric that describes the accuracy best with its value, if any was measured."""
    score = recorded.accuracy
    return f"{score[0]} {formatted(*score)}" if score else None


def dossier(story: Story, entry: CaseStory, folder: Path) -> str | None:
    """Return the link from a folder to the dossier of a case's newest run, if it is still there."""
    page = story.run_of(entry).settled.get("dossiers", {}).get(entry.case.uid)
    return quote(os.path.relpath(page, folder)) if page and Path(page).is_file() else None


def named(entry: CaseStory, root: str = "") -> dict[str, Any]:
    """Return what every table says of a case: its page, its names and its machine."""
    case = entry.case
    return {
        "page": f"{root}cases/{entry.slug}.html",
        "id": case.id,
        "name": case.name,
        **case.axes,
        "batch": case.inputs.get("batch"),
        "machine": entry.line.machine_key,
    }


def timed(spot: Spot) -> dict[str, Any]:
    """Return the step time of a case in a run."""
    return {"step": short(spot.median), "lo": short(spot.lo), "hi": short(spot.hi), "n": spot.n}


def row(entry: CaseStory, newest: int) -> dict[str, Any]:
    """Return a case as a row of the overview. Keys are short because there may be thousands of rows."""
    recorded, spot = entry.newest, entry.now
    verdict = recorded.verdict
    verdict_of_time = verdict if verdict and verdict.metric == PRIMARY else None
    return drop(
        {
            **named(entry),
            "outcome": recorded.outcome,
            **timed(spot),
            "ratio": short(verdict_of_time.times) if verdict_of_time else None,
            "moved": found[0] if verdict and (found := instead(verdict)) else None,
            "factor": short(entry.factor.value) if entry.factor else None,
            "right": right(recorded),
            **spark(entry.line),
            "old": newest - spot.run or None,
            "tried": entry.line.experiments.get(entry.spots[-1].run),
            "why": sentence(verdict) if verdict else recorded.metrics[PRIMARY].reason,
        }
    )


def drop(row: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the unknown values of a row."""
    return {name: value for name, value in row.items() if value is not None}


def counted(outcomes: Iterable[str]) -> dict[str, int]:
    """Count the outcomes, the most important first."""
    counts = Counter(outcomes)
    return {name: counts[name] for name in sorted(counts, key=place)}
