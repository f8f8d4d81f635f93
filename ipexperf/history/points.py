"""The points of series as one DataFrame: SQL narrows, and every view of a trend is a function of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ipexperf.case import AXES, OF_NETWORKS, turned
from ipexperf.history.rows import case_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Select

NUMBERS = ("median", "mean", "mad", "lo", "hi", "ratio")
INTEGERS = ("batch", "size", "version")
COLUMNS = [
    *("started_at", "run_uid", "branch", "commit", "torch_version", "ipex_version", "machine_key", "suite"),
    *("test", *AXES),
    *("batch", "size", "version", "data", "knobs", "case_uid", "metric", "unit", "higher_is_better", "n"),
    *("median", "mean", "mad", "lo", "hi", "outcome", "reason", "verdict", "ratio"),
]
"""A point is one metric of one case in one run. `outcome` is that of the measurement; `verdict` and `ratio` are the
judge's. `knobs` are those that are not at their default, such as `+optimizer:adam`."""


def read(connection: Connection, query: Select[Any]) -> pd.DataFrame:
    """Return the points that a query selects, each with its `case_id`."""
    result = connection.execute(query)
    records = result.all()
    points = pd.DataFrame([*map(tuple, records)], columns=[*result.keys()])
    ids = {uid: case_of(row._mapping).id for uid, row in {row.case_uid: row for row in records}.items()}  # noqa: SLF001 - its public name
    points["case_id"] = points["case_uid"].map(ids)
    points["size"] = points["params"].map(lambda params: params.get("size"))
    points["data"] = points["params"].map(lambda params: params.get("data"))
    points["knobs"] = points["params"].map(lambda params: turned(sorted(params.get("knobs", {}).items())))
    return whole(points[["case_id", *COLUMNS]].astype(dict.fromkeys(NUMBERS, "float64")))


def shown(points: pd.DataFrame) -> pd.DataFrame:
    """Return points for readers: without columns that none of these cases can have."""
    lacking = ("test",) if points.empty else [name for name in ("test", *OF_NETWORKS) if points[name].isna().all()]
    return points[[name for name in COLUMNS if name not in lacking]]


def whole(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with whole numbers beside what is missing: functions have no batch, and pandas has floats."""
    missing = (name for name in INTEGERS if name in table and table[name].isna().any())
    return table.astype(dict.fromkeys(missing, "Int64"))


def rows(points: pd.DataFrame) -> list[dict[str, Any]]:
    """Return points as rows, in which None is what is missing."""
    return points.astype(object).where(points.notna(), None).to_dict("records")  # type: ignore[return-value]


def by_series(points: pd.DataFrame) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each series, ordered by the id of its case."""
    for _, series in points.groupby(["case_id", "machine_key", "case_uid", "metric"]):
        yield rows(series)
