"""A process that has imported pytest and ipexperf, and forks the runs and commands that tests ask for.

Hundreds of runs import the same modules, which takes longer than most of them measure. A forked run shares these
imports with the server and nothing else: no suite was collected there and no case ran. A rehearsal in processes of its
own tells the server what to import.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from plugin_suite import CELL, CONFTEST, SHORT, SUITE, TEMPLATE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TESTS = Path(__file__).parents[1]
FAKE = TESTS / "fakes" / "fake.py"


class Servers:
    """A server for each PYTHONPATH that runs have, started for the first of them."""

    def __init__(self, options: Sequence[str]) -> None:
        self._options = options
        self._servers: dict[str, Server] = {}
        self._names: list[str] | None = None

    def run(self, program: str, arguments: Sequence[str], folder: Path, timeout: float) -> pytest.RunResult:
        """Run `python -m PROGRAM` with the environment of this process, as `pytester.runpytest_subprocess` does."""
        path = os.environ["PYTHONPATH"]
        if path not in self._servers:
            self._servers[path] = Server(self._options, self._names)
            self._names = self._servers[path].names
        return self._servers[path].run(program, arguments, folder, timeout)

    def close(self) -> None:
        for server in self._servers.values():
            server.close()


class Server:
    """A process from which runs are forked. It rehearses to learn the names of modules, unless they are given."""

    def __init__(self, options: Sequence[str], names: Sequence[str] | None) -> None:
        self._channel, theirs = Pipe()
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno()), *options]
            self._process = subprocess.Popen(command, pass_fds=(theirs.fileno(),))
        self._channel.send(names)
        self.names: list[str] = self._channel.recv()

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

    def __init__(self, names: Iterable[str]) -> None:
        self._names = names

    def pytest_collection(self) -> None:
        for name in self._names:
            importlib.import_module(name)


def _import(options: Sequence[str], empty: str, names: Iterable[str] = ()) -> None:
    with Path(os.devnull).open("w") as null, contextlib.redirect_stdout(null):
        pytest.main(["-p", "no:cacheprovider", f"--rootdir={empty}", *options, empty], plugins=[Preload(names)])


def rehearse(options: Sequence[str], folder: str) -> list[str]:
    """The modules that a run, a command and a judged run import, by doing each once in a fork of this process."""
    for name, text in (("pytest.ini", "[pytest]\n"), ("conftest.py", CONFTEST), ("test_suite.py", SUITE)):
        Path(folder, name).write_text(text)
    cell = [word.replace("--", "--perf-", 1) for word in CELL]
    length = (*SHORT, "--perf-launches=2", "--perf-baseline=stored")
    measure = (*options, f"--perf-load={FAKE}", "--perf-model", "tiny", *cell, *length)
    accept = ("baseline", "accept", "last", "--reason", "rehearsed")
    names: set[str] = set()
    for program, words in (("pytest", measure), ("ipexperf", accept), ("pytest", measure)):
        out, err, modules = (Path(folder, name) for name in ("out", "err", "modules"))
        pid = os.fork()
        if pid == 0:
            try:
                run(program, words, folder, dict(os.environ), str(out), str(err))
            except SystemExit as ending:
                modules.write_text("\n".join(sys.modules))
                os._exit(int(ending.code or 0))
            except BaseException:  # noqa: BLE001 - this process must not become a second server
                err.write_text(traceback.format_exc())
            finally:
                os._exit(1)
        _, status = os.waitpid(pid, 0)
        assert status == 0, out.read_text() + err.read_text()
        names.update(modules.read_text().split())
    return sorted(name for name in names - set(sys.modules) if _installed(name))


def _installed(name: str) -> bool:
    """Whether a module is of an installed package or of ours, not of a suite."""
    with contextlib.suppress(ImportError, ValueError, AttributeError):
        return importlib.util.find_spec(name) is not None
    return False


def preload(options: Sequence[str], names: Sequence[str] | None = None) -> Sequence[str]:
    """Import what runs import. Return the names of these modules, from a rehearsal unless they are given."""
    if names is None:
        with tempfile.TemporaryDirectory() as folder:
            _import(options, folder)
            names = rehearse(options, folder)
    with tempfile.TemporaryDirectory() as folder:
        _import(options, folder, names)
    return names


def serve(channel: Connection, options: Sequence[str]) -> None:
    """Fork a run for each request, until there are no more. Each child ends as the run that it was asked for."""
    names = preload(options, channel.recv())
    channel.send(names)
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
    if TEMPLATE in os.environ:
        sys.path.append(str(TESTS))
        from forked_workers import install

        install(os.environ[TEMPLATE])
    sys.exit(pytest.console_main() if program == "pytest" else cli.main())


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), sys.argv[2:])
