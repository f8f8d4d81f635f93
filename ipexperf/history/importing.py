"""Write the runs of other tools into a history. They are known by their content, so importing twice changes nothing.

Nothing was judged in them: each result has the verdict `no_baseline`, and their environment says that it was imported.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, insert, select

from ipexperf.case import FunctionCase
from ipexperf.errors import UsageError
from ipexperf.history import rows, schema
from ipexperf.history.formats import SECONDS, Result, ToolRun
from ipexperf.history.store import History, environment_of, identify, identify_all
from ipexperf.history.values import canonical, finite, series_uid, summary
from ipexperf.judge.environment import IMPORTED
from ipexperf.result import FIGURE, METRICS, PRIMARY
from ipexperf.verdict import Verdict


class Counts(NamedTuple):
    """How many results were new, were there already, and have no number, and how many runs were dated by their file."""

    new: int = 0
    there: int = 0
    left_out: int = 0
    undated: int = 0

    def __add__(self, other: tuple[Any, ...]) -> Counts:
        return Counts(*map(sum, zip(self, other, strict=True)))


class _Imported(NamedTuple):
    """A result as a history has it: a case, with the values of its metrics by the uid of their series."""

    case: FunctionCase
    uid: str
    """Of the case."""
    result: Result
    series: Mapping[str, str]
    values: Mapping[str, Sequence[float]]


def write(history: History, tool: str, runs: Sequence[ToolRun], file: Path) -> Counts:
    """Write the runs of a file, completely or not at all. Raise UsageError for results that make no sense."""
    if runs and not any(run.results for run in runs):
        raise UsageError("it has no results")
    modified = datetime.fromtimestamp(file.stat().st_mtime, timezone.utc)
    try:
        with history.writing() as connection:
            return sum((_write(connection, tool, run, modified) for run in runs), Counts())
    except OverflowError:
        raise UsageError("it has an integer that is too large for a number here") from None


def _write(connection: Connection, tool: str, run: ToolRun, modified: datetime) -> Counts:
    key = f"{tool}-{re.sub(r'[^A-Za-z0-9._]+', '-', run.machine).strip('-')}"
    every = list(_results(run, key))
    counts = Counts(left_out=list(run.results).count(None), undated=int(run.started_at is None))
    if not every:
        return counts
    document = _environment(tool, run, key)
    environment_id = environment_of(connection, document)
    started_at = (run.started_at or modified).isoformat(timespec="microseconds")
    run_row: dict[str, Any] = {"uid": _uid(run, key, every), "started_at": started_at, "status": IMPORTED}
    meta = {"suite": tool, **({"git": document["git"]} if run.commit else {})}
    run_row |= {"environment_id": environment_id, "meta": meta, **rows.versions(document)}
    run_id = identify(connection, schema.run, run_row)
    cases = identify_all(connection, schema.case, [rows.case_row(one.case, tool) for one in every])
    of_series = [row for one in every for row in _series(one, cases[one.uid], key)]
    series = identify_all(connection, schema.series, of_series)
    measured = schema.measurement
    there = set(connection.execute(select(measured.c.series_id).where(measured.c.run_id == run_id)).scalars())
    new = [one for one in every if series[one.series[PRIMARY]] not in there]
    judged = Verdict("no_baseline", f"imported from {tool}: nothing was judged", policy=IMPORTED)
    policy_id = identify(connection, schema.policy, rows.policy_row(judged, None))
    verdict = {"policy_id": policy_id, **rows.verdict_row(judged)}
    launched = {"environment_id": environment_id, "outcome": "ok", "reason": "", "log": ""}
    for table, values in (
        (measured, [{"series_id": series[uid], **row} for one in new for uid, row in _measurements(one)]),
        (
            schema.launch,
            [{**launched, "case_id": cases[one.uid], **row} for one in new for row in _launches(one, started_at)],
        ),
        (schema.verdict, [{**verdict, "series_id": series[one.series[PRIMARY]]} for one in new]),
    ):
        if values:
            connection.execute(insert(table), [{"run_id": run_id, **row} for row in values])
    return counts._replace(new=len(new), there=len(every) - len(new))


def _environment(tool: str, run: ToolRun, machine_key: str) -> dict[str, Any]:
    described = {"hardware": run.hardware, "software": run.software}
    known = {part: {name: value for name, value in facts.items() if value} for part, facts in described.items()}
    names = {name: text and _plain(text) for name, text in (("commit", run.commit), ("branch", run.branch))}
    git = {"git": names} if run.commit else {}
    return {"machine_key": machine_key, IMPORTED: tool, **known, **git}


def _uid(run: ToolRun, machine_key: str, every: Sequence[_Imported]) -> str:
    content = [] if run.grows else [[one.uid, one.values] for one in every]
    told = canonical(finite([machine_key, run.commit, run.started_at and run.started_at.isoformat(), content]))
    return str(uuid.UUID(hashlib.sha256(told.encode()).hexdigest()[:32]))


def _results(run: ToolRun, machine_key: str) -> Iterator[_Imported]:
    """Yield the results that have numbers. Refuse those that make no sense, or cannot be told apart."""
    seen = set()
    for result in filter(None, run.results):
        unit = SECONDS.get(result.unit)
        timed = unit is not None and result.higher_is_better is False
        name = _plain(result.name if timed or not result.unit else f"{result.name} [{result.unit}]")
        case = FunctionCase(name, result.device)
        if case in seen or not name or not result.values or (timed and min(result.values) < 0):
            wrong = "is there twice in one run" if case in seen else "has no name, no value or a time below 0"
            raise UsageError(f"the result '{name}' {wrong}")
        seen.add(case)
        own = {PRIMARY: [value * unit for value in result.values]} if timed and unit else {FIGURE: result.values}
        beside = {name: of_metric for name, of_metric in result.beside.items() if of_metric}
        values, uid = {PRIMARY: [], **own, **beside}, case.uid
        yield _Imported(case, uid, result, {name: series_uid(uid, machine_key, name) for name in values}, values)


def _plain(text: str) -> str:
    """A text in one line, without what a terminal would obey or a database cannot store."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _series(one: _Imported, case_id: int, machine_key: str) -> Iterator[dict[str, Any]]:
    for metric in one.values:
        row = {**rows.series_row(one.case, machine_key, metric), "case_id": case_id}
        figure = {"unit": one.result.unit or row["unit"], "higher_is_better": one.result.higher_is_better}
        yield {**row, **figure} if metric == FIGURE else row


def _measurements(one: _Imported) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a result by series. What is no time has one of speed without numbers, as every case has one."""
    for metric, values in one.values.items():
        yield (
            one.series[metric],
            {"n": len(values), **summary(values, METRICS[metric].median), "outcome": "ok", "reason": ""},
        )


def _launches(one: _Imported, started_at: str) -> Iterator[dict[str, Any]]:
    """Yield a launch for each process that the tool tells of."""
    for number in range(max(map(len, one.values.values()))):
        metrics = {metric: values[number] for metric, values in one.values.items() if number < len(values)}
        yield {"launch": number, "doc": {"started_at": started_at, "metrics": metrics}}
