"""A PostgreSQL server of the tests' own: in a folder of its own, reached by a socket in it, and gone at their end."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import OperationalError

USER, PASSWORD = "tester", "open sesame"
OPTIONS = ("listen_addresses=", "fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=60")
START_SECONDS = 60


def binaries() -> Path | None:
    """Where the newest PostgreSQL is: Debian keeps it out of the PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    anywhere = shutil.which("initdb")
    return Path(anywhere).parent if anywhere else found[-1].parent if found else None


class Server:
    """A running server, which makes a database for each who asks."""

    def __init__(self, sockets: Path) -> None:
        self._sockets = sockets
        self._numbers = itertools.count()

    def url(self, database: str, password: str = PASSWORD, user: str = USER) -> str:
        address = URL.create("postgresql", user, password, database=database, query={"host": str(self._sockets)})
        return address.render_as_string(hide_password=False)

    def execute(self, sql: str, database: str = "postgres") -> None:
        url = self.url(database).replace("postgresql:", "postgresql+psycopg:")
        engine = create_engine(url, isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                connection.execute(text(sql))
        finally:
            engine.dispose()

    def database(self, template: str = "template0") -> str:
        """Make a database and return its URL."""
        name = f"made{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
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
        with (home / "log").open("wb") as log:
            process = subprocess.Popen(command, cwd=home, stdout=log, stderr=log, **who)
        try:
            server = Server(home)
            _wait(process, home / "log", lambda: server.execute("SELECT 1"))
            yield server
        finally:
            process.send_signal(signal.SIGINT)  # it does not wait for clients that are still connected
            process.wait(timeout=START_SECONDS)


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
