"""The points of series as one DataFrame: SQL narrows, and every view of a trend is a function of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ipexperf.case import AXES
from ipexperf.history.rows import case_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import Connection, Select

NUMBERS = ("median", "mean", "mad", "lo", "hi", "ratio")
COLUMNS = [
    *("started_at", "run_uid", "branch", "commit", "torch_version", "ipex_version", "machine_key", "suite", *AXES),
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
    points["size"] = points["params"].map(lambda params: params["size"])
    points["data"] = points["params"].map(lambda params: params["data"])
    points["knobs"] = points["params"].map(lambda params: _turned(params.get("knobs", {})))
    return points[["case_id", *COLUMNS]].astype(dict.fromkeys(NUMBERS, "float64"))


def _turned(knobs: Mapping[str, str]) -> str:
    return "".join(f"+{name}:{value}" for name, value in sorted(knobs.items()))


def rows(points: pd.DataFrame) -> list[dict[str, Any]]:
    """Return points as rows, in which None is what is missing."""
    return points.astype(object).where(points.notna(), None).to_dict("records")  # type: ignore[return-value]


def by_series(points: pd.DataFrame) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each series, ordered by the id of its case."""
    for _, series in points.groupby(["case_id", "machine_key", "case_uid", "metric"]):
        yield rows(series)
