"""A process that has imported pytest and ipexperf, and forks the runs and commands that tests ask for.

Hundreds of runs import the same modules, which takes longer than most of them measure. A forked run shares these
imports with the server and nothing else: no suite was collected there and no case ran.
"""

import atexit
import contextlib
import gc
import importlib
import io
import os
import pkgutil
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

import pytest

INSTALLED = any(entry.name == "ipexperf" for entry in entry_points(group="pytest11"))
QUICK = ("-p", "no:hypothesispytest", "-p", "no:anyio", *(() if INSTALLED else ("-p", "ipexperf.plugin")))
"""Options of pytest: nothing waits for Hypothesis and anyio to be imported."""
WRITTEN = os.O_WRONLY | os.O_CREAT
LATE = ("alembic.command", "scipy.special")
"""Packages that a run imports within functions."""


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
            # Not the variables of the first test: each run brings its own.
            plain = {name: value for name, value in os.environ.items() if not name.startswith("IPEXPERF_")}
            self._process = subprocess.Popen(command, pass_fds=(theirs.fileno(),), env=plain)

    def run(self, program: str, arguments: Sequence[str], folder: Path, timeout: float) -> pytest.RunResult:
        """Run `python -m PROGRAM` with the environment of this process."""
        with tempfile.TemporaryDirectory() as outputs:
            out, err = Path(outputs, "out"), Path(outputs, "err")
            self._channel.send((program, tuple(arguments), str(folder), dict(os.environ), str(out), str(err)))
            pid = self._channel.recv()
            began = time.monotonic()
            if not self._channel.poll(timeout):
                os.kill(pid, signal.SIGKILL)
                self._channel.recv()
                raise TimeoutError(f"no end after {timeout:.0f} s: {arguments}\n{out.read_text()}")
            status = self._channel.recv()
            said, complained = (path.read_text(errors="backslashreplace").splitlines() for path in (out, err))
        sys.stdout.write("\n".join(said) + "\n")
        sys.stderr.write("\n".join(complained) + "\n")
        with contextlib.suppress(ValueError):
            status = pytest.ExitCode(status)
        return pytest.RunResult(status, said, complained, time.monotonic() - began)

    def close(self) -> None:
        self._channel.close()  # the server sees the end of its requests
        self._process.wait()


class Preload:
    """Import through pytest's import hook: it warns of plugins that were imported without it."""

    def pytest_collection(self) -> None:
        for name in (*_modules(), *LATE):
            with contextlib.suppress(ImportError):  # of some tools, packages that they need may be missing
                importlib.import_module(name)
        assert "torch" not in sys.modules


def _modules() -> Iterator[str]:
    """All of ipexperf but suites, migrations, and what only leaves share, which imports torch."""
    import ipexperf

    for module in pkgutil.walk_packages(ipexperf.__path__, "ipexperf."):
        _, *parts = module.name.split(".")
        if not {"suites", "migrations"} & {*parts} and not parts[-1].startswith("_"):
            yield module.name


def preload(options: Sequence[str]) -> None:
    """Import what runs import."""
    with tempfile.TemporaryDirectory() as empty, contextlib.redirect_stdout(io.StringIO()) as output:
        words = ["-p", "no:cacheprovider", f"--rootdir={empty}", *options, empty]
        status = pytest.main(words, plugins=[Preload()])
    # Without what it was to import, each run would import it again: that is slow, and no test would fail.
    assert status == pytest.ExitCode.NO_TESTS_COLLECTED, output.getvalue()


def serve(channel: Connection, options: Sequence[str]) -> None:
    """Fork a run on request, and wait for it, until there are no more. Each child ends as its run does."""
    preload(options)
    gc.freeze()  # or each run would look through all that was imported here
    while True:
        try:
            *what, out, err = channel.recv()
        except EOFError:
            return
        outputs = opened(out, err)
        pid = os.fork()
        if pid == 0:
            channel.close()
            _end_with(*what, *outputs)
        for output in outputs:
            os.close(output)
        channel.send(pid)
        channel.send(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def opened(out: str, err: str) -> tuple[int, int]:
    """The files of a run's standard output and standard error, open to write to."""
    return os.open(out, WRITTEN, 0o600), os.open(err, WRITTEN, 0o600)


def _end_with(*request: Any) -> NoReturn:
    """Run, and leave out the interpreter's own end: it takes down all that was imported, which takes long."""
    try:
        run(*request)
    except SystemExit as ending:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(int(ending.code or 0))


def run(
    program: str, arguments: Sequence[str], folder: str, environment: dict[str, str], out: int, err: int
) -> NoReturn:
    """Become the process that `python -m PROGRAM` would have started."""
    from ipexperf import cli

    for fd, descriptor in ((0, os.open(os.devnull, os.O_RDONLY)), (1, out), (2, err)):
        os.dup2(descriptor, fd)
        os.close(descriptor)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it, and so do we
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # what the process before the fork made of its TMPDIR
    sys.path[0] = folder
    sys.argv = [program, *arguments]
    if program == "pytest":
        runpy.run_module("pytest", run_name="__main__")
    sys.exit(cli.main())


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), sys.argv[2:])
