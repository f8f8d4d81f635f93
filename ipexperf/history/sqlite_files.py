"""Operations on a history file without SQLAlchemy."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.dialects import sqlite

from ipexperf.errors import HistoryError
from ipexperf.history import addresses, database, schema

FINDINGS = 3
"""Number of faults of a damaged file to report."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The content of a file: schema revision, rows per table, bytes, and runs that were never finished."""

    path: str
    revision: str
    rows: dict[str, int]
    bytes: int
    unfinished: int


def path_of(target: str | os.PathLike[str]) -> Path:
    """Return the path of a history. Raise HistoryError if it is not a SQLite file."""
    path = addresses.file_of(target)
    if path is None:
        raise HistoryError(f"{os.fspath(target)!r} is not an SQLite file: use the tools of its database server.")
    try:
        exists = path.is_file()
    except OSError as error:  # such as a name that is too long
        raise HistoryError(f"the history {str(path)!r} cannot be opened: {error.strerror}.") from error
    if not exists:
        raise HistoryError(f"there is no history {path}; a run of the suite creates one, or name another file.")
    return path


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file without migrating it. Errors become a HistoryError with one sentence.

    SQLite undoes what a killed process left half done, which it can only where it may write.
    """
    name = f"history {path}"
    with database.translated(name), database.decoded(name), closing(database.connect(path, "rw")) as connection:
        yield connection


def revision(connection: sqlite3.Connection, path: Path) -> str:
    """Return the schema revision of a file. Raise HistoryError if it is not a history."""
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    database.check_tables(tables, f"history {path}")
    record = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(record[0]) if record else "none"


def check(target: str | os.PathLike[str]) -> Checked:
    """Read every page, value and reference of a history. Raise HistoryError with the faults."""
    path = path_of(target)
    with opened(path) as connection:
        number = revision(connection, path)
        _check_pages(connection, path)
        _check_values(connection)
        lost = connection.execute("PRAGMA foreign_key_check").fetchall()
        if lost:
            rows = ", ".join(f"a row of {row[0]} without its {row[2]}" for row in lost[:FINDINGS])
            raise HistoryError(f"the history {path} has {len(lost)} rows whose parent is missing: {rows}.")
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        counts = {name: _count(connection, name) for name in schema.metadata.tables if name in tables}
        unfinished = _count(connection, "run", "status = 'running'")
    return Checked(str(path), number, counts, path.stat().st_size, unfinished)


def _check_pages(connection: sqlite3.Connection, path: Path) -> None:
    faults = [" ".join(str(row[0]).split()) for row in connection.execute(f"PRAGMA integrity_check({FINDINGS})")]
    if faults != ["ok"]:
        raise HistoryError(f"the history {path} is damaged: {'; '.join(faults)}.")


def _check_values(connection: sqlite3.Connection) -> None:
    """Read every value as queries do, which raise an error for one of another kind than its column's."""
    dialect = sqlite.dialect()
    for name, table in schema.metadata.tables.items():
        present = {row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')}
        columns = [column for column in table.columns if column.name in present]
        readers: list[Any] = [column.type.result_processor(dialect, None) for column in columns]
        names = ", ".join(f'"{column.name}"' for column in columns)
        rows = connection.execute(f'SELECT {names} FROM "{name}"') if columns else ()  # noqa: S608 - names of ours
        for row in rows:
            for read, value in zip(readers, row, strict=True):
                read(value)


def _count(connection: sqlite3.Connection, table: str, where: str = "1") -> int:
    query = f'SELECT count(*) FROM "{table}" WHERE {where}'  # noqa: S608 - a name and a condition of ours
    return int(connection.execute(query).fetchone()[0])
