"""The points of series as one DataFrame: SQL narrows, and every view of a trend is a function of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ipexperf.case import AXES
from ipexperf.history.rows import case_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import Connection, Select

SERIES = ["case_uid", "machine_key", "metric"]
"""Equal for the points of one series."""
NUMBERS = ("median", "mean", "mad", "lo", "hi", "ratio", "rolling")
COLUMNS = [
    *("started_at", "run_uid", "branch", "commit", "torch_version", "ipex_version", "machine_key", "suite", *AXES),
    *("batch", "size", "version", "data", "knobs", "case_uid", "metric", "unit", "higher_is_better", "n"),
    *("median", "mean", "mad", "lo", "hi", "outcome", "reason", "verdict", "ratio", "rolling"),
]
"""A point is one metric of one case in one run. `outcome` is that of the measurement; `verdict` and `ratio` are the
judge's. `knobs` are those that are not at their default, such as `+optimizer:adam`. `rolling` is the rolling median of
the last good runs of the series, if requested and there are enough runs."""


def read(connection: Connection, query: Select[Any], rolling: int | None, limit: int | None) -> pd.DataFrame:
    """Return the points that a query selects, each with its `case_id`.

    With `rolling`, keep the newest `limit` points of each series afterwards.
    """
    result = connection.execute(query)
    found = result.all()
    points = pd.DataFrame([*map(tuple, found)], columns=[*result.keys()])
    ids = {uid: case_of(row._mapping).id for uid, row in {row.case_uid: row for row in found}.items()}  # noqa: SLF001 - its public name
    points["case_id"] = points["case_uid"].map(ids)
    points["size"] = points["params"].map(lambda params: params["size"])
    points["data"] = points["params"].map(lambda params: params["data"])
    points["knobs"] = points["params"].map(lambda params: _turned(params.get("knobs", {})))
    points["rolling"] = None if rolling is None else _rolling(points, rolling)
    points = points[["case_id", *COLUMNS]].astype(dict.fromkeys(NUMBERS, "float64"))
    return points if rolling is None or limit is None else points.groupby(SERIES).tail(limit).reset_index(drop=True)


def _turned(knobs: Mapping[str, str]) -> str:
    return "".join(f"+{name}:{value}" for name, value in sorted(knobs.items()))


def _rolling(points: pd.DataFrame, width: int) -> pd.Series[float]:
    """The median of the last `width` good runs up to each point. A run that failed has none, and is in none."""
    good = points[(points["outcome"] == "ok") & points["median"].notna()]
    return good.groupby(SERIES)["median"].transform(lambda medians: medians.rolling(width).median())


def rows(points: pd.DataFrame) -> list[dict[str, Any]]:
    """Return points as rows, in which None is what is missing."""
    return points.astype(object).where(points.notna(), None).to_dict("records")  # type: ignore[return-value]


def by_series(points: pd.DataFrame) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of each series, ordered by the id of its case."""
    for _, series in points.groupby(["case_id", "machine_key", "case_uid", "metric"]):
        yield rows(series)
