"""How the bare scripts are driven: for each line `go N` on standard input they print the seconds of N steps."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any


def replies() -> Any:
    """Return the standard output for replies. From now on, whatever else prints goes to standard error."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return stream


def answer(stream: Any, loop: Callable[[int], None], synchronise: Callable[[], None] = lambda: None) -> None:
    """Say that the loop is ready, and time it for each request until there are no more."""
    print("ready", file=stream, flush=True)
    for line in sys.stdin:
        steps = int(line.split()[1])
        synchronise()
        begin = time.perf_counter()
        loop(steps)
        synchronise()
        print(time.perf_counter() - begin, file=stream, flush=True)
