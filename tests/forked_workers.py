"""Let a template fork the workers of a test run that would start fresh."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from worker_template import MESSAGE

from ipexperf.conduct import process, worker
from ipexperf.conduct.server import GONE_SECONDS, Forked, Server
from ipexperf.redaction import tuned

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Process:
    """A server's process, which is not our child: those parts of `subprocess.Popen` that Server needs."""

    returncode = -signal.SIGKILL

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        return None if Path(f"/proc/{self.pid}").exists() else self.returncode

    def wait(self, timeout: float = GONE_SECONDS) -> int:
        until = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("a server of forked workers", timeout)
            time.sleep(0.01)
        return self.returncode

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


class TemplateServer(Server):
    """The server of this run for workers with one environment."""

    def __init__(self, path: str, environment: Mapping[str, str], folder: str, cores: tuple[int, ...]) -> None:
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.connect(path)
        self._line.send(json.dumps({"environment": environment, "folder": folder, "cores": cores}).encode())
        self._process = _Process(json.loads(self._line.recv(MESSAGE))["pid"])  # type: ignore[assignment]


@cache
def _server(path: str, environment: tuple[tuple[str, str], ...], folder: str, cores: tuple[int, ...]) -> TemplateServer:
    return TemplateServer(path, dict(environment), folder, cores)


def install(path: str) -> None:
    """Start the workers of this process from the template with this socket.

    Workers with another interpreter, or with variables that libraries read when they are imported, still start fresh.
    """
    plain = tuned(process.environment_of(None, None))

    def start_worker(
        python: str | None, environment: Mapping[str, str], requests: int, replies: int, log: int
    ) -> subprocess.Popen[bytes] | Forked:
        if python not in (None, sys.executable) or tuned(environment) != plain:
            return process.start_worker(python, environment, requests, replies, log)
        cores = tuple(sorted(os.sched_getaffinity(0)))
        return _server(path, tuple(sorted(environment.items())), str(Path.cwd()), cores).fork(requests, replies, log)

    worker.start_worker = start_worker
