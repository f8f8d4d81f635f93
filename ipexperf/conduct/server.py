"""The controller's side of fork servers: processes that have imported everything and fork workers on request."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ipexperf.bench.machine import kernel_files
from ipexperf.bench.outcome import signal_name
from ipexperf.bench.process.server import MESSAGE
from ipexperf.conduct.process import BOOT, environment_of, last_lines
from ipexperf.errors import ForkError, WorkerError

POLL_SECONDS = 0.01
ASK_SECONDS = 30.0
GONE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """What a server imports before it is forked, and how it is started. Workers with equal specs can share one."""

    stack: str
    load: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    ahead: tuple[str, ...] = ()
    """Packages that building the model imports. A server that cannot be forked with them does without."""
    python: str | None = None
    variables: tuple[tuple[str, str], ...] = ()
    timeout: float = 60.0

    @property
    def imports(self) -> str:
        """What it imports, as JSON."""
        return json.dumps({name: getattr(self, name) for name in ("stack", "load", "needs", "ahead")})


def _over(pid: int) -> bool:
    """Whether a process has ended. Its pid stays taken until somebody waits for it."""
    try:
        return kernel_files.stat_fields(pid)[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


class Forked:
    """A worker that a server forked, with those parts of `subprocess.Popen` that Worker needs."""

    def __init__(self, server: Server, pid: int) -> None:
        self._server = server
        self.pid = pid
        self._status: int | None = None

    def poll(self) -> int | None:
        """Its exit status, negative for a signal. None while it runs."""
        if self._status is None and not _over(self.pid):
            return None
        try:
            return self.wait()
        except WorkerError:
            return -signal.SIGKILL  # its server is gone, so the kernel has killed it

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Polls the kernel, then asks the server once for the exit status."""
        until = None if timeout is None else time.monotonic() + timeout
        while self._status is None:
            if _over(self.pid):
                self._status = self._server.ask("wait", pid=self.pid)["status"]
            elif until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired("a forked worker", timeout or 0.0)
            else:
                time.sleep(POLL_SECONDS)
        return self._status

    def kill(self) -> None:
        """Kill it, unless its pid may belong to another process by now."""
        if self._status is None and self._server.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class Server:
    """One fork server. Its workers die with it, and it dies with us."""

    def __init__(self, spec: ServerSpec) -> None:
        """Start the server, without waiting for its imports."""
        self._timeout = spec.timeout
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [spec.python or sys.executable, "-u", str(BOOT), "server", str(theirs.fileno()), spec.imports]
        try:
            with theirs:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=self._log,
                    env=environment_of(spec.python, dict(spec.variables)),
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
        except BaseException:
            self._line.close()
            self._log.close()
            raise

    def ready(self) -> None:
        """Wait until the imports are done. Raise the reason if they fail, or left what cannot be forked safely."""
        try:
            reply = self._reply(self._timeout)
        except WorkerError as error:
            last = last_lines(self._log).splitlines()[-1:]
            raise ForkError("; ".join([error.reason, *last])) from None
        if reply["reason"]:
            raise ForkError(reply["reason"])

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def fork(self, requests: int, replies: int, log: int) -> Forked:
        """Fork a worker that answers over these descriptors and writes its output to this log."""
        reply = self.ask("fork", (requests, replies, log))
        if reply["unsafe"]:
            # Do not start a fresh one instead: all launches of one case must start the same way.
            raise WorkerError("error", f"the fork server can't be forked any more: {reply['unsafe']}")
        return Forked(self, reply["pid"])

    def ask(self, do: str, descriptors: tuple[int, ...] = (), **request: Any) -> dict[str, Any]:
        """Send a request and wait for its reply."""
        try:
            socket.send_fds(self._line, [json.dumps({"do": do, **request}).encode()], descriptors)
        except OSError:
            raise self._death() from None
        return self._reply(ASK_SECONDS)

    def _reply(self, timeout: float) -> dict[str, Any]:
        self._line.settimeout(timeout)
        try:
            message = self._line.recv(MESSAGE)
        except TimeoutError:
            self._end()
            raise WorkerError("crashed", f"the fork server did not answer within {timeout:g} s") from None
        except OSError:
            message = b""  # it died before it read the request
        if not message:
            raise self._death()
        reply: dict[str, Any] = json.loads(message)
        return reply

    def _death(self) -> WorkerError:
        """The error for a worker whose server is gone. How the worker ended is unknown."""
        # The socket closes a moment before the process has ended.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GONE_SECONDS)
        self._end()
        code = self._process.returncode
        how = f"was killed by {signal_name(-code)}" if code < 0 else f"ended with exit status {code}"
        return WorkerError("crashed", f"the fork server {how}, and its workers with it")

    def _end(self) -> None:
        self._line.close()
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the server and all of its workers."""
        self._end()
        self._log.close()


@contextlib.contextmanager
def start_servers(specs: Iterable[ServerSpec]) -> Iterator[dict[ServerSpec, Server]]:
    """Start a server for each distinct spec, all importing at the same time. End them with the block."""
    with contextlib.ExitStack() as stack:
        started = {spec: stack.enter_context(contextlib.closing(Server(spec))) for spec in dict.fromkeys(specs)}
        for server in started.values():
            server.ready()
        yield started
