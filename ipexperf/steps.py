"""Steps of long work: a line each in a file or a pipe, and on a terminal one line that shows the latest."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable

QUIET_SECONDS = 5
"""From so many seconds on, the line says how long its step has taken."""
TICK_SECONDS = 1.0


class Step(str):
    """Progress that is worth reading until the next step."""

    __slots__ = ()


class Notice(str):
    """What nobody may miss, such as what decides how far a number can be trusted: `-q` does not hide it."""

    __slots__ = ()


class LiveLine:
    """The last line of a terminal. A thread counts its seconds, so that nobody wonders whether the work goes on."""

    def __init__(self, descriptor: int, columns: Callable[[], int], status: Callable[[], str]) -> None:
        """Write to this descriptor, which is closed with the line. `status` says how far the work is."""
        self._descriptor, self._columns, self._status = descriptor, columns, status
        self._step, self._began = "", 0.0
        self._column = 0
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._count, name="ipexperf live line", daemon=True)
        self._thread.start()

    def show(self, step: str, column: int = 0) -> None:
        """Put this step in the place of the one before: below a line that ends at this column, if not 0."""
        if column != self._column:
            self.clear()
        with self._lock:
            self._step, self._began, self._column = step, time.monotonic(), column
            self._draw()

    def clear(self) -> None:
        """Take the line away, for whoever writes next."""
        with self._lock:
            if self._step:
                self._step = ""
                self._write("\r\033[K")

    def close(self) -> None:
        self.clear()
        self._ended.set()
        self._thread.join()
        os.close(self._descriptor)

    def _count(self) -> None:
        while not self._ended.wait(TICK_SECONDS):
            with self._lock:
                if self._step:
                    self._draw()

    def _draw(self) -> None:
        seconds = time.monotonic() - self._began
        passed = f" ({seconds:.0f} s)" if seconds >= QUIET_SECONDS else ""
        line = "  " + " | ".join(filter(None, (self._status(), self._step)))
        room = self._columns() - 1 - len(passed)
        if len(line) > room:
            line = f"{line[: room - 3]}..."
        self._write(f"\r\033[K\033[2m{line}{passed}\033[0m")

    def _write(self, text: str) -> None:
        if self._column:
            text = f"\n{text}\033[A\033[{self._column + 1}G"
        with contextlib.suppress(OSError):  # the terminal is gone
            os.write(self._descriptor, text.encode())
