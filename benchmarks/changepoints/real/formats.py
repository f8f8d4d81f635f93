"""Readers of recorded series: our own CSV, the results folder of asv, and Mozilla's published performance series.

Several values of one run become their median. A label marks the first run of a new level.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

TRUE_ALERTS = ("TP", "FN")
"""How Mozilla marks what was a change: an alert that was right, and a change that had no alert."""
NO_ALERTS = ("FP", "SP", "TN")
"""An alert that was wrong, one that nobody has judged yet, and no alert."""


class FormatError(ValueError):
    """A file is not what its format says. The message is one sentence."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One series: a value a run, oldest first. `labels` are the runs with which a level is known to have begun."""

    name: str
    times: tuple[str, ...]
    values: tuple[float, ...]
    labels: tuple[int, ...]


class Row(NamedTuple):
    """One value of one run of a series. `run` orders the runs; rows with the same one belong together."""

    series: str
    run: tuple[float, str]
    time: str
    value: float
    labelled: bool = False


def read_csv(path: Path) -> list[Recorded]:
    """Read `series,time,value[,label]`: `time` is a number or ISO 8601, any text in `label` marks a new level."""
    return _series(
        Row(line["series"], (_time(line["time"], place), ""), line["time"], value, bool(line.get("label")))
        for place, line in _lines(path, ("series", "time", "value"))
        if (value := _value(line["value"], place)) is not None
    )


def read_mozilla(path: Path) -> list[Recorded]:
    """Read one file of time series of Mozilla's published data set, or a folder of them.

    Needs the columns `signature_id`, `push_timestamp`, `revision` and `value`. `alert_summary_status_general`, which
    only the annotated files have, gives the labels.
    """
    files = sorted(path.rglob("*_timeseries_data.csv")) if path.is_dir() else [path]
    if not files:
        raise FormatError(f"{path} has no file *_timeseries_data.csv")
    return _series(row for file in files for row in _mozilla_rows(file))


def _mozilla_rows(path: Path) -> Iterator[Row]:
    for place, line in _lines(path, ("signature_id", "push_timestamp", "revision", "value")):
        status = line.get("alert_summary_status_general") or "TN"
        if status not in TRUE_ALERTS + NO_ALERTS:
            raise FormatError(f"{place}: alert_summary_status_general is {status!r}, not TP, FN, FP, SP or TN")
        value = _value(line["value"], place)
        if value is not None:
            run = (_time(line["push_timestamp"], place), line["revision"])
            yield Row(line["signature_id"], run, line["push_timestamp"], value, status in TRUE_ALERTS)


def read_asv(path: Path) -> list[Recorded]:
    """Read the results folder of asv, with files `MACHINE/COMMIT-ENVIRONMENT.json` of version 2. It has no labels."""
    files = sorted(file for file in path.glob("*/*.json") if file.name != "machine.json")
    if not files:
        raise FormatError(f"{path} has no file MACHINE/COMMIT-ENVIRONMENT.json")
    return _series(row for file in files for row in _asv_rows(file))


def _asv_rows(path: Path) -> Iterator[Row]:
    """Yield the values of one commit. A benchmark whose version changed is another series."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FormatError(f"{path} is no JSON: {error}") from None
    if not isinstance(document, dict) or document.get("version") != 2 or "result_columns" not in document:
        raise FormatError(f"{path} is no result file of asv's version 2")
    try:
        moment = document["date"] / 1000
        time = datetime.fromtimestamp(moment, timezone.utc).isoformat()
        run = (moment, str(document["commit_hash"]))
        for benchmark, columns in document["results"].items():
            named: dict[str, Any] = dict(zip(document["result_columns"], columns, strict=False))
            version = str(named.get("version", ""))[:8]
            combinations = list(itertools.product(*named["params"]))
            for value, parameters in zip(named["result"] or [None] * len(combinations), combinations, strict=True):
                if value is not None and math.isfinite(value):
                    name = f"{path.parent.name} {document['env_name']} {benchmark}({', '.join(parameters)}) {version}"
                    yield Row(name.rstrip(), run, time, float(value))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise FormatError(f"{path} is no result file of asv: {type(error).__name__}: {error}") from None


def _lines(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield where each line of a CSV file is, and the line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise FormatError(f"{path} is no text in UTF-8") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    missing = [name for name in columns if name not in (reader.fieldnames or ())]
    if missing:
        raise FormatError(f"{path} has no column {', '.join(missing)}")
    for line in reader:
        place = f"{path}, line {reader.line_num}"
        if any(line[name] is None for name in columns):
            raise FormatError(f"{place}: there are fewer cells than columns")
        yield place, line


def _time(text: str, place: str) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise FormatError(f"{place}: {text!r} is neither a number nor a time like 2026-11-24T02:00:00Z") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


def _value(text: str, place: str) -> float | None:
    """Return a number, or None for an empty cell: nothing was measured."""
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise FormatError(f"{place}: the value {text!r} is no finite number")
    return number


def _series(rows: Iterable[Row]) -> list[Recorded]:
    every: dict[str, dict[tuple[float, str], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        every[row.series][row.run].append(row)
    if not every:
        raise FormatError("there is no value in it")
    return [_recorded(name, [runs[run] for run in sorted(runs)]) for name, runs in sorted(every.items())]


def _recorded(name: str, runs: Sequence[Sequence[Row]]) -> Recorded:
    return Recorded(
        name,
        tuple(rows[0].time for rows in runs),
        tuple(statistics.median(row.value for row in rows) for rows in runs),
        tuple(number for number, rows in enumerate(runs) if any(row.labelled for row in rows)),
    )


FORMATS: dict[str, Callable[[Path], list[Recorded]]] = {"csv": read_csv, "asv": read_asv, "mozilla": read_mozilla}
