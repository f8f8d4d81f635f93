"""The systems on which ipexperf runs."""

from __future__ import annotations

import sys


def refuse_others(error: type[Exception]) -> None:
    """Raise this error on a system where ipexperf does not run."""
    if sys.platform != "linux":
        reason = f"ipexperf runs on Linux alone, for it reads /proc and places processes, and this is {sys.platform}"
        raise error(f"{reason}: use a Linux machine, WSL 2 or a container")
