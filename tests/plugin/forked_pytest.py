"""A process that has imported pytest and ipexperf, and forks the runs and commands that tests ask for.

Hundreds of runs import the same modules, which takes longer than most of them measure. A forked run shares these
imports with the server and nothing else: no suite was collected there and no case ran. A rehearsal in processes of its
own tells the server what to import.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import importlib.util
import io
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

import pytest
from plugin_suite import CELL, CONFTEST, PATIENCE, SHORT, SUITE, TEMPLATE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

TESTS = Path(__file__).parents[1]
FAKE = TESTS / "fakes" / "fake.py"
WRITTEN = os.O_WRONLY | os.O_CREAT


class Servers:
    """A server for each PYTHONPATH that runs have, started for the first of them."""

    def __init__(self, options: Sequence[str]) -> None:
        self._options = options
        self._servers: dict[str, Server] = {}
        self._names: list[str] | None = None

    def run(self, program: str, arguments: Sequence[str], folder: Path, timeout: float) -> pytest.RunResult:
        """Run `python -m PROGRAM` with the environment of this process, as `pytester.runpytest_subprocess` does."""
        return self._server().run(program, arguments, folder, timeout)

    def start(self, arguments: Sequence[str], folder: Path) -> Started:
        """Start `python -m pytest`, and do not wait for it. Its workers are fresh processes."""
        return self._server().start(arguments, folder)

    def _server(self) -> Server:
        path = os.environ["PYTHONPATH"]
        if path not in self._servers:
            self._servers[path] = Server(self._options, self._names)
            self._names = self._servers[path].names
        return self._servers[path]

    def close(self) -> None:
        for server in self._servers.values():
            server.close()


class Server:
    """A process from which runs are forked. It rehearses to learn the names of modules, unless they are given."""

    def __init__(self, options: Sequence[str], names: Sequence[str] | None) -> None:
        self._channel, theirs = Pipe()
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno()), *options]
            # Not the variables of the first test: each run brings its own.
            plain = {name: value for name, value in os.environ.items() if not name.startswith("IPEXPERF_")}
            self._process = subprocess.Popen(command, pass_fds=(theirs.fileno(),), env=plain)
        self._channel.send(names)
        self.names: list[str] = self._channel.recv()

    def run(self, program: str, arguments: Sequence[str], folder: Path, timeout: float) -> pytest.RunResult:
        """Run `python -m PROGRAM` with the environment of this process."""
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as outputs:
            out, err = Path(outputs, "out"), Path(outputs, "err")
            pid = self._fork(program, arguments, folder, dict(os.environ), out, err)
            self._channel.send(("wait", pid))
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

    def start(self, arguments: Sequence[str], folder: Path) -> Started:
        """Start `python -m pytest` with the environment of this process."""
        environment = {name: value for name, value in os.environ.items() if name != TEMPLATE}
        with tempfile.TemporaryDirectory() as outputs:
            output = Path(outputs, "output")
            os.mkfifo(output)
            reader = os.open(output, os.O_RDONLY | os.O_NONBLOCK)  # or this would wait for a writer, which may die
            pid = self._fork("pytest", arguments, folder, environment, output, output)
            os.set_blocking(reader, True)  # the run has the other end now, so that this end sees when it closes
            return Started(self, pid, os.fdopen(reader, errors="backslashreplace"))

    def _fork(
        self, program: str, arguments: Sequence[str], folder: Path, environment: dict[str, str], out: Path, err: Path
    ) -> int:
        self._channel.send(("fork", program, tuple(arguments), str(folder), environment, str(out), str(err)))
        pid: int = self._channel.recv()
        return pid

    def wait(self, pid: int) -> int:
        """The exit status of a run, negative for a signal."""
        self._channel.send(("wait", pid))
        status: int = self._channel.recv()
        return status

    def close(self) -> None:
        self._channel.close()  # the server sees the end of its requests
        self._process.wait()


class Started:
    """A run that goes on: those parts of `subprocess.Popen` that tests need."""

    def __init__(self, server: Server, pid: int, stdout: IO[str]) -> None:
        self.pid = pid
        self.stdout = stdout
        """Its output, and its errors."""
        self.returncode: int | None = None
        self._server = server

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind:
            self.kill()
        self.stdout.close()
        self.wait()

    def poll(self) -> int | None:
        if self.returncode is None and Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX":
            self.returncode = self._server.wait(self.pid)
        return self.returncode

    def wait(self) -> int:
        while (status := self.poll()) is None:
            time.sleep(0.01)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float = PATIENCE) -> tuple[str, None]:
        """What it still writes until its end."""
        parts: list[str] = []
        reader = threading.Thread(target=lambda: parts.append(self.stdout.read()), daemon=True)
        reader.start()
        reader.join(timeout)
        if reader.is_alive():
            raise TimeoutError(f"no end after {timeout:.0f} s")
        self.stdout.close()
        self.wait()
        return parts[0], None


class Preload:
    """Import through pytest's import hook: it warns of plugins that were imported without it."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = names

    def pytest_collection(self) -> None:
        for name in self._names:
            with contextlib.suppress(ImportError):  # some modules of packages can only be imported by another one
                importlib.import_module(name)


def _import(options: Sequence[str], empty: str, names: Iterable[str] = ()) -> None:
    words = ["-p", "no:cacheprovider", f"--rootdir={empty}", *options, empty]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        status = pytest.main(words, plugins=[Preload(names)])
    # Without what it was to import, each run would import it again: that is slow, and no test would fail.
    assert status == pytest.ExitCode.NO_TESTS_COLLECTED, output.getvalue()


def rehearse(options: Sequence[str], folder: str) -> list[str]:
    """The modules that a run, a command and a judged run import, by doing each once in a fork of this process."""
    for name, text in (("pytest.ini", "[pytest]\n"), ("conftest.py", CONFTEST), ("test_suite.py", SUITE)):
        Path(folder, name).write_text(text)
    cell = [word.replace("--", "--perf-", 1) for word in CELL]
    length = (*SHORT, "--perf-launches=2", "--perf-against=stored")
    measure = (*options, f"--perf-load={FAKE}", "--perf-model", "tiny", *cell, *length)
    accept = ("baseline", "accept", "last", "--reason", "rehearsed")
    names: set[str] = set()
    for program, words in (("pytest", measure), ("ipexperf", accept), ("pytest", measure)):
        out, err, modules = (Path(folder, name) for name in ("out", "err", "modules"))
        pid = os.fork()
        if pid == 0:
            try:
                run(program, words, folder, dict(os.environ), *opened(str(out), str(err)))
            except SystemExit as ending:
                modules.write_text(
                    "\n".join(name for name, module in sys.modules.items() if not _within(folder, module))
                )
                os._exit(int(ending.code or 0))
            except BaseException:  # noqa: BLE001 - this process must not become a second server
                err.write_text(traceback.format_exc())
            finally:
                os._exit(1)
        _, status = os.waitpid(pid, 0)
        assert status == 0, out.read_text() + err.read_text()
        names.update(modules.read_text().split())
    return sorted(name for name in names - set(sys.modules) if _installed(name))


def _within(folder: str, module: object) -> bool:
    """Whether a module is of the suite in this folder. Its conftest has the name of ours."""
    return str(getattr(module, "__file__", None)).startswith(folder)


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
    """Fork runs and wait for them on request, until there are no more. Each child ends as its run does."""
    names = preload(options, channel.recv())
    channel.send(names)
    gc.freeze()  # or each run would look through all that was imported here
    while True:
        try:
            do, *request = channel.recv()
        except EOFError:
            return
        if do == "wait":
            channel.send(os.waitstatus_to_exitcode(os.waitpid(request[0], 0)[1]))
            continue
        *what, out, err = request
        outputs = opened(out, err)
        pid = os.fork()
        if pid == 0:
            channel.close()
            _end_with(*what, *outputs)
        for output in outputs:
            os.close(output)
        channel.send(pid)


def opened(out: str, err: str) -> tuple[int, int]:
    """The files of a run's standard output and standard error, open to write to."""
    first = os.open(out, WRITTEN, 0o600)
    return first, os.dup(first) if err == out else os.open(err, WRITTEN, 0o600)


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
    if TEMPLATE in os.environ:
        sys.path.append(str(TESTS))
        from forked_workers import install

        install(os.environ[TEMPLATE])
    if program == "pytest":
        runpy.run_module("pytest", run_name="__main__")
    sys.exit(cli.main())


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), sys.argv[2:])
