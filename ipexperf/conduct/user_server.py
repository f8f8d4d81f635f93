"""A server of the user's, for a client that is measured: start it, wait until it is ready, end it."""

from __future__ import annotations

import http.client
import shlex
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from ipexperf import units
from ipexperf.conduct import program
from ipexperf.conduct.program import Ran, Running
from ipexperf.errors import WorkerError

PORT = "{port}"
"""In the words of a server, of its client and of what asks whether it is ready, its port."""
PAUSE = 0.1
"""Seconds between two questions whether it is ready."""
FROM_HERE = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Server(Running):
    """A server on a port of its own, until `close`."""

    name, lines, patience = "the server", 3, 5.0

    def __init__(
        self, words: Sequence[str], ready: str, folder: Path, environment: Mapping[str, str], seconds: float
    ) -> None:
        """Start it, and wait until it is ready. Raises WorkerError if it is not in so many seconds."""
        with socket.socket() as free:
            free.bind(("", 0))
            self._port = str(free.getsockname()[1])
        self._where = folder, environment
        super().__init__(self._with_port(words), folder, environment)
        try:
            self._wait(self._with_port(shlex.split(ready)), seconds)
        except BaseException:
            self.close()
            raise

    def run(self, client: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float) -> Ran:
        """Run a client to its end. Raises WorkerError, of the server if that has ended."""
        try:
            ran = program.run(self._with_port(client), folder, environment, seconds)
        except WorkerError:
            self._check(1.0)  # it may just end
            raise
        self._check(0)
        return ran

    def _with_port(self, words: Sequence[str]) -> list[str]:
        return [word.replace(PORT, self._port) for word in words]

    def _check(self, seconds: float) -> None:
        """Raise WorkerError if it ends in so many seconds."""
        if self.took(seconds) is not None:
            raise WorkerError("error", f"the server ended with 0: {self.said}", self.said)

    def _wait(self, ready: Sequence[str], seconds: float) -> None:
        until = time.monotonic() + seconds
        while why := self._unready(ready, max(until - time.monotonic(), PAUSE)):
            self._check(PAUSE)
            if time.monotonic() > until:
                within = f"within {units.seconds(seconds)} (--perf-timeout)"
                text = f"the server was not ready {within}: {why}; it printed last: {self.said}"
                raise WorkerError("timed_out", text, self.said)
        self._check(0)  # else another process answered on its port

    def _unready(self, ready: Sequence[str], seconds: float) -> str:
        """Why it is not ready, or an empty text."""
        try:
            if not ready:
                socket.create_connection(("localhost", int(self._port)), seconds).close()
            elif ready[0].startswith(("http://", "https://")):
                FROM_HERE.open(ready[0], timeout=seconds).close()
            else:
                program.run(ready, *self._where, seconds)
        except urllib.error.HTTPError as error:
            return str(error) if error.code >= http.client.INTERNAL_SERVER_ERROR else ""
        except WorkerError as error:
            if error.outcome == program.UNABLE:
                raise
            return f"--ready: {error.detail}"
        except (OSError, http.client.HTTPException) as error:
            return str(error)
        return ""
