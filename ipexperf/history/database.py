"""Open the database: connect, refuse files of others, back up, migrate."""

from __future__ import annotations

import gc
import os
import sqlite3
import struct
import time
import warnings
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.exc import DBAPIError, NoResultFound, SAWarning, SQLAlchemyError

from ipexperf.errors import HistoryError
from ipexperf.history import schema
from ipexperf.history.addresses import file_of, url_of
from ipexperf.redaction import redacted

BUSY_SECONDS = 10
CACHE_KIB = 64 * 1024
"""Page cache of SQLite. The inner pages of ten million rows do not fit into the default of 2 MiB."""
NOTICE_SECONDS = 30
"""Longest time without an acknowledgement of the server. After it, the network counts as cut."""
UNDECODABLE = (ArithmeticError, AttributeError, LookupError, NoResultFound, TypeError, ValueError, struct.error)
"""Exceptions raised while decoding a row that lacks a value or has a wrong type."""
MIGRATIONS = Path(__file__).parent / "migrations"
FILE = "file"
"""Where a connection keeps the path of its file, and which file that was."""

_ALONE = text("SELECT set_config('lock_timeout', :seconds, true), pg_advisory_xact_lock(1768973688)")
"""Takes the lock of writers on PostgreSQL, whose number stands for `ipex`."""


def open_engine(target: str | os.PathLike[str], *, create: bool) -> tuple[Engine, str]:
    """Connect to a file or URL and migrate its schema. Return the engine, and the name to show in messages."""
    url, path = url_of(target), file_of(target)
    name = f"history {path or redacted(os.fspath(target))}"
    if path:
        _check_place(path, create=create)
        _prepare_file(path, name, create=create)
        if not _may_write(path):
            engine, name = open_read_only(path)
            _migrate(engine, path, name)  # it refuses an older schema: nothing can be written
            return engine, name
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", SAWarning)  # an argument of the URL that the driver does not know
            engine = create_engine(url, connect_args=_arguments(url))
    except ImportError as error:
        postgresql = url.get_backend_name() == "postgresql"
        driver = "it by pip install 'ipexperf[postgresql]'" if postgresql else "the driver that its URL names"
        raise HistoryError(f"the {name} cannot be opened: {error}; install {driver}.") from error
    except SAWarning as error:
        refused = f"its driver does not take these arguments of the URL: {', '.join(url.query)}"
        raise HistoryError(f"the {name} cannot be opened: {refused}.") from error
    except SQLAlchemyError as error:
        raise HistoryError(f"the {name} cannot be opened: {_first_line(error)}.") from error
    if engine.dialect.name == "sqlite":
        _behave(engine)
    try:
        with translated(name):
            if not path:
                with reading(engine, name) as connection:
                    check_tables(set(inspect(connection).get_table_names()), name, create=create)
            _migrate(engine, path, name)
    except BaseException:
        engine.dispose()
        raise
    return engine, name


def open_read_only(path: Path) -> tuple[Engine, str]:
    """Connect to a file that stays as it is: it is not migrated. Return the engine, and the name for messages."""
    url = URL.create("sqlite", database=str(path))
    engine = create_engine(url, creator=lambda: connect(path, "ro"))
    _behave(engine)
    return engine, f"history {path}"


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """Connect to a file without SQLAlchemy: with `ro` for reading, `rw` for writing, `rwc` to create it too.

    Where this user may not write, SQLite is told that nobody does: it could not make the files of a log beside it.
    """
    if not _may_write(path):
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size:
            raise HistoryError(f"the history {path} is not writable for this user, and {log} is not empty: copy both.")
        mode = "ro&immutable=1"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Turn errors of the database into a HistoryError with one sentence."""
    try:
        yield
    except (DBAPIError, sqlite3.Error, UnicodeDecodeError) as error:
        raise HistoryError(f"the {name} cannot be used: {_first_line(error)}.") from error
    except UnicodeEncodeError as error:
        raise HistoryError(f"the {name} cannot be asked for {error.object!r}, which is not UTF-8.") from error


@contextmanager
def writing(engine: Engine, name: str, *, migrates: bool = False) -> Iterator[Connection]:
    """Open a transaction that takes the write lock at once. Taking it later is how concurrent writers fail.

    On PostgreSQL too, only one process writes at a time, so what a writer has read does not change before it writes.

    Unless it `migrates` the schema itself, it is refused if another program has done so since the history was opened.
    """
    with translated(name), engine.connect() as plain:
        _check_still_there(plain, name)
        connection = plain.execution_options(writes=True)
        with connection.begin():
            if engine.dialect.name == "postgresql":
                connection.execute(_ALONE, {"seconds": f"{BUSY_SECONDS}s"})
            if not migrates:
                _check_still_ours(connection, name)
            yield connection


def _check_still_there(connection: Connection, name: str) -> None:
    """Raise HistoryError if the file is another one than was opened: SQLite goes on writing to a deleted one."""
    path, opened = connection.info.get(FILE, ("", None))
    if path and _identity(path) != opened:
        raise HistoryError(f"the {name} was deleted or replaced while it was open.")


def _identity(path: str) -> tuple[int, int] | None:
    """Return what tells a file from another of the same name. None: there is no file."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _check_still_ours(connection: Connection, name: str) -> None:
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    if revision != schema.REVISION:
        meanwhile = f"was changed to schema {revision} meanwhile, and this program writes {schema.REVISION}"
        raise HistoryError(f"the {name} {meanwhile}.")


@contextmanager
def reading(engine: Engine, name: str) -> Iterator[Connection]:
    """Open a read transaction: a consistent snapshot that blocks nobody."""
    with translated(name), engine.connect() as plain:
        # SQLite's transactions are snapshots by default. Elsewhere each statement would have a snapshot of its own.
        isolation = {} if engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}
        connection = plain.execution_options(**isolation)
        with connection.begin(), collector_held_off(), decoded(name):
            yield connection


@contextmanager
def collector_held_off() -> Iterator[None]:
    """Pause the garbage collector while many rows are read. They have no cycles, and it would scan them each time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextmanager
def decoded(name: str) -> Iterator[None]:
    """Turn the errors of decoding a row into a HistoryError. Only a damaged or foreign history has such rows."""
    try:
        yield
    except UnicodeEncodeError:
        raise  # what was asked for, not what is there
    except UNDECODABLE as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise HistoryError(f"the {name} is damaged: it holds a row that cannot be read ({reason}).") from error


def _first_line(error: Exception) -> str:
    cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
    return (str(cause) or type(cause).__name__).splitlines()[0].rstrip(".")


def _arguments(url: URL) -> dict[str, Any]:
    """Connection arguments with timeouts, unless the address has its own.

    Without them, connecting to an absent server takes minutes, and a quarter of an hour passes until somebody notices
    that the network is cut.
    """
    watch = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4}
    server = {"connect_timeout": BUSY_SECONDS, "tcp_user_timeout": NOTICE_SECONDS * 1000, **watch}
    by_backend = {"sqlite": {"timeout": BUSY_SECONDS}, "postgresql": server}
    chosen = by_backend.get(url.get_backend_name(), {})
    return {name: value for name, value in chosen.items() if name not in url.query}


def _check_place(path: Path, *, create: bool) -> None:
    try:
        is_folder = path.is_dir()
    except OSError as error:  # such as a name that is too long
        raise HistoryError(f"the history {str(path)!r} cannot be opened: {error.strerror}.") from error
    if is_folder:
        raise HistoryError(f"the history {path} is a folder; name a file in it, such as {path / 'ipexperf.db'}.")
    if not path.parent.is_dir():
        raise HistoryError(f"the folder of the history {path} does not exist; create {path.parent} first.")
    if not path.exists() and not create:
        raise HistoryError(f"there is no history {path}; a run of the suite creates one, or name another file.")
    if create and not _may_write(path):
        raise HistoryError(f"the history {path} is not writable for this user; write to another file.")


def _may_write(path: Path) -> bool:
    """Whether this user may write a file. SQLite writes a log beside it, so the folder must be writable too."""
    return os.access(path.parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))


def _prepare_file(path: Path, name: str, *, create: bool) -> None:
    """Refuse a file that is not a history before changing anything, then turn the write-ahead log on."""
    with translated(name), closing(connect(path, "rwc" if create else "rw")) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        check_tables(tables, name, create=create)
        deadline = time.monotonic() + BUSY_SECONDS
        while _may_write(path) and not _logs_ahead(connection):
            if time.monotonic() > deadline:
                raise HistoryError(f"the {name} cannot have a write-ahead log: is it on a network file system?")
            time.sleep(0.02)


def check_tables(tables: Collection[str], name: str, *, create: bool = False) -> None:
    """Raise HistoryError if a database with these tables is not a history, or is empty and none is to be created."""
    if tables and "alembic_version" not in tables:
        raise HistoryError(f"the {name} is a database of something else: it has no ipexperf schema.")
    if not tables and not create:
        raise HistoryError(f"the {name} is empty: it has no tables; a run of the suite makes them.")


def _logs_ahead(connection: sqlite3.Connection) -> bool:
    """Turn the write-ahead log on, unless another process is doing so: this statement ignores the busy timeout."""
    try:
        return bool(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        return False


def _behave(engine: Engine) -> None:
    """Let SQLAlchemy begin transactions, not the driver, so that writers take the write lock at once."""

    @event.listens_for(engine, "connect")
    def connected(connection: sqlite3.Connection, record: Any) -> None:
        connection.isolation_level = None
        path = connection.execute("PRAGMA database_list").fetchone()[2]  # empty: in memory
        record.info[FILE] = path, _identity(path)
        connection.execute("PRAGMA foreign_keys = ON").close()
        connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}").close()
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}").close()

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    return None if revision is None else str(revision)


def _migrate(engine: Engine, path: Path | None, name: str) -> None:
    """Make the schema, or migrate it after a backup, in one transaction. If it is current, this costs one query."""
    with reading(engine, name) as connection:
        if _revision(connection) == schema.REVISION:
            return
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from alembic.util.exc import CommandError

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    revisions = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    with writing(engine, name, migrates=True) as connection:
        revision = _revision(connection)  # again: another process may have migrated while this one waited
        if revision == schema.REVISION:
            return
        config.attributes["connection"] = connection
        if revision is None:
            schema.metadata.create_all(connection)
            command.stamp(config, schema.REVISION)
            return
        if revision not in revisions:
            age, what = ("newer", "upgrade ipexperf") if revision > schema.REVISION else ("older", "begin another one")
            text = f"has schema {revision}, {age} than the {schema.REVISION} of this program; {what}"
            raise HistoryError(f"the {name} {text}.")
        if path:
            _back_up(path, path.with_name(f"{path.name}.backup-{revision}"))
        try:
            command.upgrade(config, schema.REVISION)
        except (CommandError, SQLAlchemyError) as error:
            raise HistoryError(f"the {name} is unchanged, its migration failed: {_first_line(error)}.") from error


def _back_up(path: Path, copy: Path) -> None:
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as destination:
        source.backup(destination)
