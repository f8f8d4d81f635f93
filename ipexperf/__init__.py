"""ipexperf: a performance regression suite for PyTorch and Intel Extension for PyTorch, as a pytest plugin.

Importing this package costs nothing: every public name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.2.0"

_PUBLIC = {
    "Case": "ipexperf.case",
    "Launch": "ipexperf.result",
    "Measurement": "ipexperf.result",
    "Sample": "ipexperf.result",
    "Verdict": "ipexperf.verdict",
    "history": "ipexperf.history",
    "model": "ipexperf.bench.registry",
}

__all__ = ["Case", "Launch", "Measurement", "Sample", "Verdict", "__version__", "history", "model"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'ipexperf' has no attribute {name!r}")
    if name == "history":
        return importlib.import_module("ipexperf.history")
    return getattr(importlib.import_module(_PUBLIC[name]), name)
