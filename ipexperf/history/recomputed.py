"""Compute the numbers of measurements again from their launches and samples, and find those that differ."""

from __future__ import annotations

import json
import math
import sqlite3
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ipexperf.history import rows
from ipexperf.history.values import summary, unpack
from ipexperf.result import KEPT, METRICS, PRIMARY

CLOSE = 1e-9
"""Relative difference of two numbers that are the same, computed by different versions of Python."""
NUMBERS = ("median", "mean", "mad", "lo", "hi")
UNMEASURED = ("failed", "interrupted")
"""Outcomes of measurements without numbers."""
MEASUREMENTS = """SELECT s.case_id, s.metric, m.outcome, m.n, m.median, m.mean, m.mad, m.lo, m.hi
    FROM measurement AS m JOIN series AS s ON s.id = m.series_id WHERE m.run_id = ? ORDER BY s.case_id, s.id"""
LAUNCHES = """SELECT case_id, launch, json_extract(doc, '$.metrics')
    FROM launch WHERE run_id = ? AND outcome = 'ok' ORDER BY case_id, launch"""
SAMPLES = """SELECT s.case_id, x.launch, x.data FROM samples AS x JOIN series AS s ON s.id = x.series_id
    WHERE x.run_id = ? AND s.metric = ? ORDER BY s.case_id, x.launch"""
CASE = f'SELECT {", ".join(rows.CASE)}, params FROM "case" WHERE id = ?'  # noqa: S608 - names of ours


def differences(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield a sentence for each number that does not follow from what it was computed from."""
    for number, uid in connection.execute("SELECT id, uid FROM run ORDER BY id").fetchall():
        connection.execute("BEGIN")  # a run that is being recorded changes nothing between two queries
        wrong = [(_case_id(connection, case), fault) for case, fault in _of_run(connection, number)]
        connection.execute("COMMIT")
        yield from (f"{case} in run {uid}: {fault}" for case, fault in wrong)


def _of_run(connection: sqlite3.Connection, run: int) -> Iterator[tuple[int, str]]:
    launches: dict[int, dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for case, index, text in connection.execute(LAUNCHES, (run,)):
        launches[case][index] = json.loads(text)
    for case, metric, outcome, *stored in connection.execute(MEASUREMENTS, (run,)):
        values = [launch[metric] for launch in launches[case].values() if launch.get(metric) is not None]
        values_that_count = () if outcome in UNMEASURED else values
        middles: list[Callable[[Sequence[float]], float]] = [statistics.median]
        if metric in METRICS:
            middles.insert(0, METRICS[metric].median)
        faults = [
            _fault(metric, stored, (len(values), *map(summary(values_that_count, middle).get, NUMBERS)))
            for middle in middles  # the second one is how the first versions found the middle of rates
        ]
        if all(faults):
            yield case, faults[0]
    for case, index, data in connection.execute(SAMPLES, (run, PRIMARY)):
        step, walls = launches[case].get(index, {}).get(PRIMARY), unpack(data)
        # Of more requests than a record keeps, the numbers are of all of them.
        if step is not None and 0 < len(walls) < KEPT and not _same(step, statistics.median(walls)):
            by_samples = _text(statistics.median(walls))
            yield case, f"the {PRIMARY} of launch {index} is {_text(step)}, and {by_samples} by its samples"


def _fault(metric: str, stored: Sequence[float | None], computed: Sequence[float | None]) -> str:
    """The first number that was stored and is another one by its launches, or an empty text."""
    for name, old, new in zip(("n", *NUMBERS), stored, computed, strict=True):
        if not _same(old, new):
            return f"the {name} of {metric} is {_text(old)}, and {_text(new)} by its launches"
    return ""


def _same(a: float | None, b: float | None) -> bool:
    return a is b is None or (a is not None and b is not None and math.isclose(a, b, rel_tol=CLOSE))


def _text(number: float | None) -> str:
    return "none" if number is None else f"{number:.10g}"


def _case_id(connection: sqlite3.Connection, number: int) -> str:
    return rows.case_of_texts(*connection.execute(CASE, (number,)).fetchone()).id
