"""A PostgreSQL server of the tests' own: in a folder of its own, reached by a socket in it, and gone at their end."""

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import OperationalError

USER, PASSWORD = "tester", "open sesame"
OPTIONS = ("listen_addresses=", "fsync=off", "synchronous_commit=off", "full_page_writes=off")
"""What a test loses with its machine, it needs no more."""
START_SECONDS = 60


def binaries() -> Path | None:
    """Where the newest PostgreSQL is: Debian keeps it out of the PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    anywhere = shutil.which("initdb")
    return Path(anywhere).parent if anywhere else found[-1].parent if found else None


class Server:
    """A running server, which makes a database for each who asks."""

    def __init__(self, sockets: Path, command: Sequence[str | Path], who: dict[str, Any]) -> None:
        self._sockets, self._command, self._who = sockets, command, who
        self._numbers = itertools.count()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, again too if it was stopped. It recovers what it had committed before anybody gets an answer."""
        log = self._sockets / "log"
        with log.open("ab") as into:
            self._process = subprocess.Popen(self._command, cwd=self._sockets, stdout=into, stderr=into, **self._who)
        _wait(self._process, log, lambda: self.execute("SELECT 1"))

    def stop(self) -> None:
        """Stop it at once. It waits for no client: a shutdown that writes everything takes a minute on a busy disk."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(timeout=START_SECONDS)

    def url(self, database: str, password: str = PASSWORD, user: str = USER) -> str:
        where = {"host": str(self._sockets)}
        return URL.create("postgresql", user, password, database=database, query=where).render_as_string(
            hide_password=False
        )

    def execute(self, sql: str, database: str = "postgres") -> None:
        url = self.url(database).replace("postgresql:", "postgresql+psycopg:")
        engine = create_engine(url, isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                connection.execute(text(sql))
        finally:
            engine.dispose()

    def database(self) -> str:
        """Make a database and return its URL."""
        name = f"made{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)


@contextmanager
def running(programs: Path) -> Iterator[Server]:
    """Start a server in an empty folder, as a user who is not root: it refuses to run as root."""
    who = _unprivileged()
    # Not pytest's folder: another user cannot get there, and the path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="ipexperf-") as folder:
        home = Path(folder)
        if who:
            shutil.chown(home, **who)
        _make(programs, home, who)
        command = [programs / "postgres", "-D", home / "data", "-k", home]
        command += [word for option in OPTIONS for word in ("-c", option)]
        server = Server(home, command, who)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def _unprivileged() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    known = {user.pw_name for user in pwd.getpwall()}
    user = pwd.getpwnam("postgres" if "postgres" in known else "nobody")
    return {"user": user.pw_uid, "group": user.pw_gid}


def _make(programs: Path, home: Path, who: dict[str, Any]) -> None:
    password = home / "password"
    password.write_text(PASSWORD)
    password.chmod(0o644)
    command = [programs / "initdb", "-D", home / "data", "--username", USER, f"--pwfile={password}", "--no-sync"]
    command += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False, timeout=120, **who)
    assert done.returncode == 0, done.stderr


def _wait(process: subprocess.Popen[bytes], log: Path, ask: Callable[[], None]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        assert process.poll() is None, log.read_text()
        try:
            return ask()
        except OperationalError:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
