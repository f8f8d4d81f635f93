"""A process that has imported pytest and ipexperf, and forks the runs and commands that tests ask for.

Hundreds of runs import the same modules, which takes longer than most of them measure. A forked run shares these
imports with the server and nothing else: no suite was collected there and no case ran.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

IMPORTS = ("ipexperf.compare.group", "ipexperf.history.store", "ipexperf.live_baseline", "ipexperf.report.table")
"""What a run imports after its collection."""


class Servers:
    """A server for each PYTHONPATH that runs have, started for the first of them."""

    def __init__(self, options: Sequence[str]) -> None:
        self._options = options
        self._servers: dict[str, Server] = {}

    def run(self, program: str, arguments: Sequence[str], folder: Path, timeout: float) -> pytest.RunResult:
        """Run `python -m PROGRAM` with the environment of this process, as `pytester.runpytest_subprocess` does."""
        path = os.environ["PYTHONPATH"]
        if path not in self._servers:
            self._servers[path] = Server(self._options)
        return self._servers[path].run(program, arguments, folder, timeout)

    def close(self) -> None:
        for server in self._servers.values():
            server.close()


class Server:
    """A process from which runs are forked."""

    def __init__(self, options: Sequence[str]) -> None:
        self._channel, theirs = Pipe()
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno()), *options]
            self._process = subprocess.Popen(command, pass_fds=(theirs.fileno(),))

    def run(self, program: str, arguments: Sequence[str], folder: Path, timeout: float) -> pytest.RunResult:
        """Run `python -m PROGRAM` with the environment of this process."""
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as outputs:
            out, err = Path(outputs, "out"), Path(outputs, "err")
            self._channel.send((program, tuple(arguments), str(folder), dict(os.environ), str(out), str(err)))
            pid = self._channel.recv()
            if not self._channel.poll(timeout):
                os.kill(pid, signal.SIGKILL)
                self._channel.recv()
                raise TimeoutError(f"no end after {timeout:.0f} s: {arguments}\n{out.read_text()}")
            status = self._channel.recv()
            lines = [path.read_text(errors="backslashreplace").splitlines() for path in (out, err)]
        for stream, text in zip((sys.stdout, sys.stderr), lines, strict=True):
            stream.write("\n".join(text) + "\n")
        with contextlib.suppress(ValueError):
            status = pytest.ExitCode(status)
        return pytest.RunResult(status, *lines, time.monotonic() - began)

    def close(self) -> None:
        self._channel.close()  # the server sees the end of its requests
        self._process.wait()


class Preload:
    """Import what runs need through pytest's import hook: it warns of plugins that were imported without it."""

    def pytest_collection(self) -> None:
        for name in IMPORTS:
            importlib.import_module(name)


def serve(channel: Connection, options: Sequence[str]) -> None:
    """Fork a run for each request, until there are no more. Each child ends as the run that it was asked for."""
    with tempfile.TemporaryDirectory() as empty, Path(os.devnull).open("w") as null, contextlib.redirect_stdout(null):
        pytest.main(["-p", "no:cacheprovider", f"--rootdir={empty}", *options, empty], plugins=[Preload()])
    while True:
        try:
            request = channel.recv()
        except EOFError:
            return
        pid = os.fork()
        if pid == 0:
            channel.close()
            run(*request)
        channel.send(pid)
        channel.send(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def run(program: str, arguments: Sequence[str], folder: str, environment: dict[str, str], *outputs: str) -> NoReturn:
    """Become the process that `python -m PROGRAM` would have started."""
    from ipexperf import cli

    files = [(os.devnull, os.O_RDONLY), *((path, os.O_WRONLY | os.O_CREAT) for path in outputs)]
    for fd, (path, flags) in enumerate(files):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, fd)
        os.close(opened)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = folder
    sys.argv = [program, *arguments]
    sys.exit(pytest.console_main() if program == "pytest" else cli.main())


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), sys.argv[2:])
