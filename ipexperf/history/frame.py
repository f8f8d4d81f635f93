"""The history as a pandas DataFrame."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING

import pandas as pd

from ipexperf.history.records import Point
from ipexperf.history.store import History

if TYPE_CHECKING:
    import os


def frame(db: str | os.PathLike[str], *, metric: str | None, limit: int | None, **filters: str | None) -> pd.DataFrame:
    """Return one row a case, metric and run, oldest first, with `started_at` as UTC moments."""
    with History.open(db, create=False) as history:
        points = history.trend(metric, limit=limit, **filters)
    table = pd.DataFrame([asdict(point) for point in points], columns=[field.name for field in fields(Point)])
    table["started_at"] = pd.to_datetime(table["started_at"], utc=True, format="ISO8601")
    # A column of failures alone would be of objects, and would break the next calculation.
    numbers = ["median", "mean", "mad", "lo", "hi", "ratio"]
    return table.astype(dict.fromkeys(numbers, "float64"))
