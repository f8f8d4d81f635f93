"""What was measured, remembered: `History` writes and asks, and the module itself, called, returns a DataFrame.

`ipexperf.history("ipexperf.db", metric="step_time")` is the way in from a notebook. Importing this module loads
neither SQLAlchemy nor pandas: an installed pytest plugin is loaded by every pytest run on the machine.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    import pandas as pd

    from ipexperf.history.records import LaunchRecord, Point, Recorded, RunDetail, RunRecord, Summary
    from ipexperf.history.store import History

__all__ = ["History", "LaunchRecord", "Point", "Recorded", "RunDetail", "RunRecord", "Summary"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ipexperf.history' has no attribute {name!r}")
    room = "ipexperf.history.store" if name == "History" else "ipexperf.history.records"
    return getattr(importlib.import_module(room), name)


class _CallableModule(ModuleType):
    """A module that can be called, so that `ipexperf.history(...)` reads as it is meant."""

    def __call__(
        self,
        db: str | os.PathLike[str],
        *,
        metric: str | None = None,
        model: str | None = None,
        device: str | None = None,
        dtype: str | None = None,
        mode: str | None = None,
        stack: str | None = None,
        machine: str | None = None,
        branch: str | None = None,
        since: str | None = None,
        limit: int | None = None,
    ) -> pd.DataFrame:
        """Return one row a case, metric and run, oldest first; `limit` keeps the newest runs of each series."""
        from ipexperf.history.frame import frame

        filters = {"model": model, "device": device, "dtype": dtype, "mode": mode, "stack": stack}
        filters |= {"machine": machine, "branch": branch, "since": since}
        return frame(db, metric=metric, limit=limit, **filters)


sys.modules[__name__].__class__ = _CallableModule
