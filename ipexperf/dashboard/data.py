"""Numbers and points as a page gets them: short, in columns, with None for what was not measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipexperf.dashboard.story import MEMORY, Entry
from ipexperf.history.comparison import ACCURACIES, accuracy
from ipexperf.report import units
from ipexperf.result import METRICS, PRIMARY

if TYPE_CHECKING:
    from ipexperf.history.board import Line, Spot
    from ipexperf.history.records import Recorded

DIGITS = 5
"""Significant digits of a number on a page: finer than anybody can see in a chart."""
SPARK = 32
"""So many of the newest runs are drawn beside a case in a table."""
SHARES = ("accuracy", "agreement", "trivial_accuracy")


def short(value: float | None) -> float | None:
    """A number with as many digits as a page needs; what is no finite number is not told."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{DIGITS}g}")


def told(metric: str, value: float | None) -> str:
    """A number as people read it."""
    if value is None:
        return "-"
    unit = METRICS[metric].unit
    if unit == "s":
        return units.seconds(value)
    if unit == "bytes":
        return units.size(value)
    if metric in SHARES:
        return f"{value:.1%}"
    return f"{units.digits(value)} {unit}"


def moment(text: str) -> str:
    """A time for people, in UTC, to the minute."""
    return f"{text[:10]} {text[11:16]}"


def trends(line: Line) -> dict[str, dict[str, Any]]:
    """The step time with its launches, the memory, and what tells best how right the case was, in columns."""
    right = next((name for name in ACCURACIES if any(spot.median is not None for spot in line.spots.get(name, ()))), "")
    spots = line.spots[PRIMARY]
    found = {PRIMARY: columns(spots)}
    if any(spot.n > 1 for spot in spots):
        ends = {"lo": [short(spot.lo) for spot in spots], "hi": [short(spot.hi) for spot in spots]}
        found[PRIMARY] |= {**ends, "n": once([spot.n for spot in spots])}
    for name in (MEMORY, right):
        if line.spots.get(name):
            found[name] = columns(line.spots[name])
            if found[name]["run"] == found[PRIMARY]["run"]:
                del found[name]["run"]  # the same runs, told once
    return found


def columns(spots: Sequence[Spot]) -> dict[str, Any]:
    """The points of one metric: their runs, their numbers, and what became of them where not all is well."""
    outcomes = [spot.outcome for spot in spots]
    told = {"outcome": outcomes} if set(outcomes) != {"ok"} else {}
    return {"run": [spot.run for spot in spots], "median": [short(spot.median) for spot in spots], **told}


def once(values: Sequence[Any]) -> Any:
    """The values, or the one that all of them are."""
    return values[0] if len(set(values)) == 1 else list(values)


def spark(spots: Sequence[Spot]) -> list[float | None]:
    """The newest step times, oldest first; what does not count has none."""
    return [short(spot.median) if spot.outcome == "ok" else None for spot in spots[-SPARK:]]


@dataclass(frozen=True, slots=True)
class Right:
    """How right a case was: the metric and its number."""

    metric: str
    value: float

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.metric} {told(self.metric, self.value)}"


def right(recorded: Recorded | None) -> Right | None:
    """What tells best how right a case was, where anything does."""
    found = accuracy(recorded)
    return Right(*found) if found else None


def row(entry: Entry, newest: int) -> dict[str, Any]:
    """A case as a row of the overview: short names, for there may be thousands."""
    case, recorded = entry.case, entry.newest
    spot, verdict = entry.spots[-1], recorded.verdict
    own = verdict if verdict and verdict.metric == PRIMARY else None
    good = right(recorded)
    return drop(
        {
            "page": f"cases/{entry.slug}.html",
            "id": case.id,
            **{name: getattr(case, name) for name in ("model", "device", "dtype", "mode", "stack", "batch", "size")},
            "machine": entry.line.machine_key,
            "outcome": recorded.outcome,
            "step": short(spot.median),
            "lo": short(spot.lo),
            "hi": short(spot.hi),
            "n": spot.n,
            "ratio": short(own.ratio) if own else None,
            "ratio_lo": short(own.lo) if own else None,
            "ratio_hi": short(own.hi) if own else None,
            "last": short(_over_last(entry)),
            "factor": short(entry.factor.times) if entry.factor else None,
            "right": good.text if good else None,
            "spark": spark(entry.spots),
            "old": newest - spot.run or None,
            "structure": verdict.structure.outcome if verdict and verdict.structure else None,
            "why": verdict.reason if verdict else recorded.metrics[PRIMARY].reason,
        }
    )


def _over_last(entry: Entry) -> float | None:
    """The step time over that of the good run before."""
    good = [spot.median for spot in entry.spots if spot.outcome == "ok" and spot.median]
    if len(good) < 2 or entry.spots[-1].outcome != "ok":
        return None
    return good[-1] / good[-2]


def drop(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without what is not known."""
    return {name: value for name, value in row.items() if value is not None}


def counted(outcomes: Iterable[str]) -> dict[str, int]:
    """How many there are of each, the most telling first."""
    order = (
        "regressed", "failed", "invalid", "platform_shift", "improved",
        "ok", "inconclusive", "not_comparable", "no_baseline", "interrupted",
    )  # fmt: skip
    found: dict[str, int] = {}
    for outcome in outcomes:
        found[outcome] = found.get(outcome, 0) + 1
    return dict(sorted(found.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))
