"""Starts the process that measures on a host, and passes lines between it and the controller.

Ray runs one agent for each run and host. It imports only files beside this one, because the code under test is the one
that the controller sent.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

from ipexperf.tools.fleet import code, membership
from ipexperf.variables import FLEET_ADDRESS, FLEET_ENVIRONMENT, FLEET_FOLDER

LOG_BYTES = 4000
SET_BY_RAY = ("OMP_NUM_THREADS", "PYTHONBREAKPOINT", "PYTHONUNBUFFERED")
"""Variables that Ray sets in its workers. Its daemon on the host has the original values."""
PRELOAD = "LD_PRELOAD"
CLOSE_SECONDS = 30.0


def surroundings(variables_here: Mapping[str, str], parent: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for a measurement: those with which the host joined.

    A cluster that was not started by `ipexperf fleet` does not record them. Then take those of Ray's daemon, our
    parent, without what Ray adds: its own variables, and an allocator in LD_PRELOAD.
    """
    if FLEET_ENVIRONMENT in variables_here:
        joined_with: dict[str, str] = json.loads(variables_here[FLEET_ENVIRONMENT])
        own = {name: variables_here[name] for name in (FLEET_FOLDER, FLEET_ADDRESS) if name in variables_here}
        return {**joined_with, **own}
    variables = {name: value for name, value in (parent or variables_here).items() if not name.startswith("RAY_")}
    libraries = [path for path in variables.pop(PRELOAD, "").replace(":", " ").split() if "/ray/" not in path]
    if libraries:
        variables[PRELOAD] = ":".join(libraries)
    return variables if parent else {name: value for name, value in variables.items() if name not in SET_BY_RAY}


def of_parent() -> dict[str, str]:
    """The variables of our parent, Ray's daemon on this host. Empty if they cannot be read."""
    try:
        return membership.variables(os.getppid())
    except OSError:
        return {}


class Agent:
    """Starts one process on a host, for one run, and passes its lines on."""

    def __init__(self, folder: str = "", variables: Mapping[str, str] | None = None) -> None:
        """`folder` keeps weights and the like. Default: the folder with which the host joined.

        `variables` are for measurements. Default: those with which the host joined.
        """
        self._variables = variables
        self._folder = Path(folder or os.environ.get(FLEET_FOLDER) or Path.cwd())
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str] = queue.Queue()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process lives
        self._reader: threading.Thread | None = None

    def has(self, digest: str) -> bool:
        """Whether this code is here already."""
        return (self._code / digest).is_dir()

    def install(self, archive: bytes, digest: str) -> None:
        code.unpack(archive, digest, self._code)

    @property
    def _code(self) -> Path:
        return self._folder / ".ipexperf" / "fleet" / "code"

    def start(self, digest: str) -> None:
        """Start the process with this code."""
        home = self._code / digest
        variables = self._surroundings()
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(home), variables.get("PYTHONPATH", "")]))
        command = [sys.executable, "-u", "-m", "ipexperf.tools.fleet.worker"]
        self._launch([*command, "--folder", str(self._folder), "--loaded", str(home)], variables)

    def _surroundings(self) -> dict[str, str]:
        return surroundings(os.environ, of_parent()) if self._variables is None else dict(self._variables)

    def _launch(self, command: list[str], variables: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=self._folder,
            env=variables,
            start_new_session=True,  # it finishes its group when we are gone
        )
        self._restore_priority(self._process)
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def _restore_priority(self, process: subprocess.Popen[str]) -> None:
        """Give the process the priority that Ray's daemon has, unless we may not: Ray lowers that of what it starts."""
        from ipexperf.tools.fleet.messages import ProgressLine, line

        wanted = os.getpriority(os.PRIO_PROCESS, os.getppid())
        try:
            if os.getpriority(os.PRIO_PROCESS, process.pid) > wanted:
                os.setpriority(os.PRIO_PROCESS, process.pid, wanted)
        except OSError:
            now = os.getpriority(os.PRIO_PROCESS, process.pid)
            text = f"it measures at priority {now}, behind others: join it by ipexperf fleet join"
            self._lines.put(line(ProgressLine(text)))

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        for text in process.stdout:
            self._lines.put(text)
        self._lines.put("")

    def send(self, lines: list[str]) -> None:
        """Pass requests on. If the process has ended, `receive` reports it."""
        assert self._process is not None  # noqa: S101 - started before
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        with contextlib.suppress(OSError):
            self._process.stdin.write("".join(f"{line}\n" for line in lines))
            self._process.stdin.flush()

    def receive(self, seconds: float) -> list[str]:
        """Return the replies so far, waiting this long for the first. The last reply reports the end of the process."""
        replies: list[str] = []
        with contextlib.suppress(queue.Empty):
            replies.append(self._lines.get(timeout=seconds))
            while True:
                replies.append(self._lines.get_nowait())
        if replies and replies[-1] == "":
            replies[-1] = self._exit()
        return replies

    def _exit(self) -> str:
        from ipexperf.tools.fleet.messages import Exited, line

        assert self._process is not None  # noqa: S101 - it has ended
        status = self._process.wait()
        text = b""
        with contextlib.suppress(ValueError):  # the log is closed
            self._log.seek(0, os.SEEK_END)
            self._log.seek(max(0, self._log.tell() - LOG_BYTES))
            text = self._log.read()
        return line(Exited(status, text.decode(errors="replace")))

    def look(self) -> str:
        """Return a `Snapshot` of this host as JSON. Controllers of other versions call this method by its name."""
        from ipexperf.tools import codec
        from ipexperf.tools.fleet import host_files

        joined = None
        with contextlib.suppress(OSError):
            joined = membership.started(os.getppid())  # Ray's daemon of this host
        return json.dumps(codec.plain(host_files.snapshot(self._folder, joined)))

    def close(self) -> None:
        """Wait for the process to end after a stop or a goodbye, and end it if it does not."""
        if self._process is not None:
            assert self._process.stdin is not None  # noqa: S101 - it is a pipe
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            try:
                self._process.wait(CLOSE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.terminate()
        self.abandon()

    def abandon(self) -> None:
        """Leave the process alone. It keeps what it still measures in its journal."""
        self._log.close()
        if self._process is None or self._reader is None:
            return
        self._reader.join(CLOSE_SECONDS if self._process.poll() is not None else 0)
        if not self._reader.is_alive():
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
