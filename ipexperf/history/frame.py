"""The history as pandas DataFrames. Rows are those that the commands print, with numbers as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, asdict, fields
from typing import TYPE_CHECKING, Any

import pandas as pd

from ipexperf.history import changed, comparison, speedups
from ipexperf.history.points import NUMBERS, shown, whole
from ipexperf.history.records import SHOWN, RunRecord, Summary
from ipexperf.history.store import History
from ipexperf.ratio import HINT, flat
from ipexperf.result import PRIMARY

if TYPE_CHECKING:
    import os
    from typing import TypeAlias

    from typing_extensions import Unpack

    from ipexperf.history.records import Filters, TrendFilters

    Target: TypeAlias = str | os.PathLike[str]


def runs(db: Target, limit: int | None = None) -> pd.DataFrame:
    """Return one row per run, newest first."""
    with History.open(db, create=False) as history:
        return _frame(RunRecord, map(asdict, history.runs(limit)))


def show(db: Target, run: str = "last") -> pd.DataFrame:
    """Return one row per case and metric of one run."""
    with History.open(db, create=False) as history:
        rows = history.show(run).to_rows()
    return _typed(pd.DataFrame(rows, columns=list(SHOWN)), [*_numbers(Summary), "ratio"])


def compare(db: Target, first: str, second: str = "last", *, metric: str = PRIMARY) -> pd.DataFrame:
    """Return one row per case of two runs, with the ratio of the second to the first."""
    with History.open(db, create=False) as history:
        result = comparison.compare(history.show(first), history.show(second), metric)
    return _frame(comparison.ComparedCase, map(flat, result.cases))


def speedup(db: Target, *runs: str, over: Sequence[str] = tuple(speedups.KINDS)) -> pd.DataFrame:
    """Return the speed-up of a dtype, stack or device, from these runs or the last."""
    with History.open(db, create=False) as history:
        cases = history.cases(runs or ("last",))
        pairs = speedups.speedups(cases, over, history.paired(cases))
    return _frame(speedups.Speedup, map(flat, pairs))


def trend(db: Target, metric: str | None = PRIMARY, **filters: Unpack[TrendFilters]) -> pd.DataFrame:
    """Return one row per case, metric and run, oldest first. `filters` are the arguments of `History.trend`."""
    with History.open(db, create=False) as history:
        return _typed(shown(history.trend(metric, **filters)), NUMBERS)


def changes(db: Target, metric: str | Sequence[str] = PRIMARY, **filters: Unpack[Filters]) -> pd.DataFrame:
    """Return one row per change of level. `filters` are those of `trend`, `since` and `until`."""
    metrics = [metric] if isinstance(metric, str) else metric
    with History.open(db, create=False) as history:
        rows = changed.changes(history, metrics, **filters)
    return _frame(changed.Changed, map(asdict, rows.changes))


def _frame(record: Any, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    columns = [name for field in fields(record) for name in _columns(field)]
    return _typed(pd.DataFrame([*rows], columns=columns), _numbers(record))


def _columns(field: Field[Any]) -> tuple[str, ...]:
    return (field.name, "lo", "hi") if field.type == HINT else (field.name,)


def _numbers(record: Any) -> list[str]:
    """The names of fields whose type is a number or None."""
    numbers = [field for field in fields(record) if field.type in ("float", "float | None", HINT)]
    return [name for field in numbers for name in _columns(field)]


def _typed(table: pd.DataFrame, numbers: Sequence[str]) -> pd.DataFrame:
    for name in table.columns:
        if str(name).endswith(("started_at", "finished_at")):
            table[name] = pd.to_datetime(table[name], utc=True, format="ISO8601")
    # A column of None alone would have the dtype object, which breaks calculations.
    return whole(table.astype(dict.fromkeys(numbers, "float64")))
