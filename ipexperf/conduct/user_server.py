"""A server of the user's, for a client that is measured: start it, wait until it is ready, end it."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shlex
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ipexperf import units
from ipexperf.bench.machine import kernel_files
from ipexperf.conduct import program
from ipexperf.conduct.program import Ran, Running
from ipexperf.errors import WorkerError

PORT = "{port}"
"""In the words of a server, of its client and of what asks whether it is ready, its port."""
PATIENCE = 5.0
"""Seconds that a server has to end by itself."""
PAUSE = 0.1
"""Seconds between two questions whether it is ready, and for it to end after it failed its client."""
LINES = 3
"""The last lines that an error shows of what it printed."""
FROM_HERE = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Server(Running):
    """A server on a port of its own, until `close`."""

    def __init__(
        self, words: Sequence[str], ready: str, folder: Path, environment: Mapping[str, str], seconds: float
    ) -> None:
        """Start it, and wait until it is ready. Raises WorkerError if it is not in so many seconds."""
        with socket.socket() as free:
            free.bind(("", 0))
            self._port = str(free.getsockname()[1])
        self._place = folder, environment
        super().__init__(self._with_port(words), folder, environment, "the server", PATIENCE)
        try:
            self._wait(self._with_port(shlex.split(ready)), seconds)
        except BaseException:
            self.close()
            raise

    def run(self, client: Sequence[str], seconds: float) -> Ran:
        """Run a client to its end. Its cost is that of both. Raises WorkerError, of the server if that has ended."""
        before, _ = self._cost()
        try:
            ran = program.run(self._with_port(client), *self._place, seconds)
        except WorkerError:
            self._check(PAUSE)
            raise
        self._check(0)
        after, peak = self._cost()
        return replace(ran, cpu=ran.cpu + after - before, peak=max(ran.peak, peak))

    def _cost(self) -> tuple[float, int]:
        """CPU seconds of its processes so far, and the most bytes of memory that one of them had."""
        stats = {}
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it ended while we looked
                stats[int(process.name)] = kernel_files.stat_fields(process.name)
        tree, below = set[int](), {self.pid}
        while below:
            tree |= below
            below = {pid for pid, fields in stats.items() if int(fields[1]) in below}
        peaks = re.findall(r"VmHWM:\s+(\d+)", "".join(kernel_files.text(f"/proc/{pid}/status") or "" for pid in tree))
        ticks = sum(int(spent) for pid in tree & stats.keys() for spent in stats[pid][11:15])
        return ticks / os.sysconf("SC_CLK_TCK"), 1024 * max(map(int, peaks), default=0)

    def _with_port(self, words: Sequence[str]) -> list[str]:
        return [word.replace(PORT, self._port) for word in words]

    def _check(self, seconds: float) -> None:
        """Raise WorkerError if it ends in so many seconds."""
        if (took := self.took(seconds)) is not None:
            raise self.ended(int(took.get("status", 1)), LINES)

    def _wait(self, ready: Sequence[str], seconds: float) -> None:
        until = time.monotonic() + seconds
        while why := self._unready(ready, max(until - time.monotonic(), PAUSE)):
            self._check(PAUSE)
            if time.monotonic() > until:
                within = f"within {units.seconds(seconds)} (--perf-timeout)"
                text = f"the server was not ready {within}: {why}; it printed last: {self.said(LINES)}"
                raise WorkerError("timed_out", text, self.said(LINES))
        self._check(0)  # else another process answered on its port

    def _unready(self, ready: Sequence[str], seconds: float) -> str:
        """Why it is not ready, or an empty text."""
        try:
            if not ready:
                socket.create_connection(("localhost", int(self._port)), seconds).close()
            elif ready[0].startswith(("http://", "https://")):
                FROM_HERE.open(ready[0], timeout=seconds).close()
            else:
                program.run(ready, *self._place, seconds)
        except urllib.error.HTTPError as error:
            return str(error) if error.code >= http.client.INTERNAL_SERVER_ERROR else ""
        except WorkerError as error:
            if error.outcome == program.UNABLE:
                raise
            return f"--ready: {error.detail}"
        except (OSError, http.client.HTTPException) as error:
            return str(error)
        return ""
