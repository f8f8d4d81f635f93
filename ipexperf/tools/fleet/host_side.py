"""What the fleet does on a host: start a command, hand over what it prints, and later the history that it wrote.

Each run has a folder of its own on the host, which stays until its history was brought.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ipexperf import scratch
from ipexperf.errors import HistoryError
from ipexperf.tools.fleet import labels
from ipexperf.tools.fleet.membership import ENVIRONMENT, FOLDER

HISTORY, LOG, LOCK = "history.db", "log", "lock"
SHARE = "IPEXFLEET_SHARE"
"""Set for a command that measures a share: this host and all hosts, as JSON."""


class HostSide:
    """One host, for one caller. On Ray it is an actor there."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._folder = Path(os.environ[FOLDER])
        # The variables that it joined with, and that by which `fleet down` finds what runs here.
        variables = {**json.loads(os.environ[ENVIRONMENT]), FOLDER: os.environ[FOLDER]}
        path = os.pathsep.join(filter(None, [str(Path(sys.executable).parent), variables.get("PATH")]))
        self._variables = {**variables, "PATH": path}
        self._home = self._folder
        self._process: subprocess.Popen[bytes] | None = None
        self._printed = 0
        """How many bytes of its log the caller has."""

    @property
    def _runs(self) -> Path:
        return self._folder / scratch.CACHE / "fleet"

    def start(self, run: str, command: Sequence[str], hosts: Sequence[str]) -> str:
        """Start a command. It measures a share if there are hosts to share with. Returns why it cannot start, or ""."""
        self._home = scratch.made(self._runs / run)
        variables = {**self._variables, "IPEXPERF_DB": str(self._home / HISTORY)}
        if hosts:
            variables[SHARE] = json.dumps([self._name, list(hosts)])
            variables["PYTEST_ADDOPTS"] = f"{variables.get('PYTEST_ADDOPTS', '')} -p ipexperf.tools.fleet.share"
        # The command inherits the lock: it is held as long as the command lives, whatever becomes of us.
        lock = os.open(self._home / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            with (self._home / LOG).open("wb") as log:
                self._process = subprocess.Popen(
                    command,
                    cwd=self._folder,
                    env=variables,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=(lock,),
                )
        except OSError as error:
            self.drop(run)
            return f"{command[0]} cannot be started: {error.strerror}"
        finally:
            os.close(lock)
        return ""

    def poll(self) -> tuple[list[str], int | None]:
        """The lines that the command printed since the last call, and its exit status if it is over."""
        if self._process is None:  # the caller was interrupted before it was started
            return [], 0
        status = None if self._held(self._home) else self._process.poll()
        with (self._home / LOG).open("rb") as log:
            log.seek(self._printed)
            content = log.read()
        if status is None:  # the last line may not be whole
            content = content[: content.rfind(b"\n") + 1]
        self._printed += len(content)
        # The file goes: what a run says of it holds for the history that it is merged into.
        text = content.decode(errors="replace").replace(f" --db {shlex.quote(str(self._home / HISTORY))}", "")
        return text.splitlines(), status

    def end(self, *, hard: bool = False) -> None:
        """End the command, as Ctrl-C does."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL if hard else signal.SIGTERM)

    def kept(self) -> dict[str, bool]:
        """The runs that were not brought yet, and whether the command of each is still alive."""
        return {path.name: self._held(path) for path in sorted(self._runs.glob("*"))}

    @staticmethod
    def _held(home: Path) -> bool:
        with (home / LOCK).open("rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def history(self, run: str) -> bytes:
        """The file that a command recorded into, complete. Empty if it recorded nothing."""
        path = self._runs / run / HISTORY
        if not path.exists():
            return b""
        try:
            with contextlib.closing(sqlite3.connect(path)) as connection:
                connection.execute("UPDATE run SET status = 'interrupted' WHERE status = 'running'")  # it was killed
                connection.commit()
                connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        except sqlite3.Error as error:
            raise HistoryError(f"{path}: {error}") from None
        return path.read_bytes()

    def drop(self, run: str) -> None:
        """Forget a run whose history was brought."""
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._runs / run)

    def software(self) -> dict[str, str]:
        """The machine and the software that a command here measures with."""
        equal: dict[str, str] = labels.look(self._folder, self._variables)["equal"]
        return equal
