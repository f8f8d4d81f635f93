"""The history of measurements. `History` writes and queries it; calling the module itself returns a DataFrame.

Call `ipexperf.history("ipexperf.db", metric="step_time")` in a notebook. Importing this module loads neither
SQLAlchemy nor pandas, because every pytest run on the machine loads an installed plugin.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    import pandas as pd
    from typing_extensions import Unpack

    from ipexperf.history.frame import changes, compare, runs, show, speedup, trend
    from ipexperf.history.records import TrendFilters
    from ipexperf.history.store import History

__all__ = ["History", "changes", "compare", "runs", "show", "speedup", "trend"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ipexperf.history' has no attribute {name!r}")
    module = importlib.import_module(f"ipexperf.history.{'store' if name == 'History' else 'frame'}")
    return getattr(module, name)


class _CallableModule(ModuleType):
    """A callable module, so that `ipexperf.history(...)` works."""

    def __call__(
        self, db: str | os.PathLike[str], *, metric: str | None = None, **filters: Unpack[TrendFilters]
    ) -> pd.DataFrame:
        """Return one row per case, metric and run, oldest first. `limit` keeps the newest runs of each series.

        It also takes `model`, `device`, `dtype`, `mode`, `stack`, `machine` and `branch`, each one name or several,
        `since` and `until`.
        """
        from ipexperf.history.frame import trend

        return trend(db, metric, **filters)


sys.modules[__name__].__class__ = _CallableModule
