"""Copy a history file into another history. Rows are identified by content, so copying twice changes nothing.

It reads the rows through one connection and writes them through another, which may be to a server.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, select, update

from ipexperf.errors import HistoryError
from ipexperf.history import addresses, schema, sqlite_files
from ipexperf.history.database import open_read_only
from ipexperf.history.store import History, insert_missing, withdraw
from ipexperf.redaction import redacted

ROWS = 500
"""How many rows are copied in one statement."""
COUNTED = ("run", "case", "measurement", "launch", "round", "bisection")
"""The tables whose new rows are counted."""
CONTINUED = "continued"
"""The count of runs that were unfinished in the target and have ended in the source."""
Ids = Mapping[str, Mapping[int, int]]
"""For each table the row ids in the target, by those in the source."""


def check(target: str | os.PathLike[str], others: Sequence[Path]) -> str:
    """Refuse files that cannot be merged before anything is written. Return the name of the history to merge into."""
    path = addresses.file_of(target)
    if path is not None:
        sqlite_files.path_of(path)
    for other in others:
        if path is not None and sqlite_files.path_of(other).resolve() == path.resolve():
            raise HistoryError(f"{other} is the history itself: there is nothing to merge.")
        _check_revision(other)
    if path is None:
        return redacted(os.fspath(target))
    _check_revision(path)
    return str(path)


def _check_revision(path: Path) -> None:
    """Refuse a file of another schema. Others may own it, so it is never migrated on the way."""
    with sqlite_files.opened(sqlite_files.path_of(path)) as connection:
        revision = sqlite_files.revision(connection, path)
    if revision != schema.REVISION:
        newer = revision.isdecimal() and revision > schema.REVISION
        advice = "upgrade ipexperf" if newer else f"run `ipexperf db upgrade --db {path}` first"
        raise HistoryError(f"the history {path} has schema {revision}, and this program {schema.REVISION}: {advice}.")


def merge(target: History, other: Path) -> dict[str, int]:
    """Copy all rows of a checked file that the target lacks, completely or not at all. The file stays as it is.

    Returns the number of new rows of each of the tables COUNTED, and of runs that were CONTINUED.
    """
    with History(*open_read_only(other)) as source, source.reading() as reader, target.writing() as writer:
        unfinished = select(schema.run.c.uid, schema.run.c.id).where(schema.run.c.status == "running")
        running = {row.uid: row.id for row in writer.execute(unfinished)}
        _drop_outdated_cases(reader, writer, running)
        ids: dict[str, dict[int, int]] = {}
        counts: Counter[str] = Counter()
        for table in schema.metadata.sorted_tables:
            order = [table.c.id] if "id" in table.c else list(table.primary_key)
            parts = reader.execute(select(table).order_by(*order)).mappings().partitions(ROWS)
            counts[table.name] = sum(_insert_missing(writer, table, part, ids) for part in parts)
            if "uid" in table.c:
                ids[table.name] = dict(_row_ids(reader, writer, table))
        continued = _complete_runs(reader, writer, running, ids)
        _supersede(reader, writer, ids)
    return {**{name: counts[name] for name in COUNTED}, CONTINUED: continued}


def _insert_missing(writer: Connection, table: Table, rows: Sequence[Any], ids: Ids) -> int:
    """Insert the missing ones of these rows. Row ids are local, so references are translated."""
    values = []
    for row in rows:
        value: dict[str, Any] = {}
        for column in table.columns:
            if column.name == "id":
                continue
            key = next(iter(column.foreign_keys), None)
            if key is None or row[column.name] is None:
                value[column.name] = row[column.name]
            elif key.column.table is table:
                value[column.name] = None  # linked afterwards
            else:
                value[column.name] = ids[key.column.table.name][row[column.name]]
        values.append(value)
    statement = insert_missing(writer, table).returning(*table.primary_key)
    return len(writer.execute(statement, values).all())


def _row_ids(reader: Connection, writer: Connection, table: Table) -> Iterator[tuple[int, int]]:
    """Yield the id of each row of the source, and that of the row with the same uid in the target."""
    query = select(table.c.id, table.c.uid).order_by(table.c.id)
    for part in reader.execute(query).partitions(ROWS):
        uids = [row.uid for row in part]
        numbers = {
            row.uid: row.id for row in writer.execute(select(table.c.id, table.c.uid).where(table.c.uid.in_(uids)))
        }
        yield from ((row.id, numbers[row.uid]) for row in part)


def _launches(connection: Connection, run: str) -> Counter[str]:
    """How many launches each case of a run has, by the uid of the case."""
    query = (
        select(schema.case.c.uid)
        .join_from(schema.launch, schema.run, schema.launch.c.run_id == schema.run.c.id)
        .join(schema.case, schema.launch.c.case_id == schema.case.c.id)
        .where(schema.run.c.uid == run)
    )
    return Counter(connection.execute(query).scalars())


def _drop_outdated_cases(reader: Connection, writer: Connection, running: Mapping[str, int]) -> None:
    """Delete cases of an unfinished run that the source has more launches of."""
    for run, number in running.items():
        own = _launches(writer, run)
        for case, count in _launches(reader, run).items():
            if 0 < own[case] < count:
                withdraw(writer, number, case)


def _complete_runs(reader: Connection, writer: Connection, running: Mapping[str, int], ids: Ids) -> int:
    """Complete the runs that were still running in the target, and have ended in the source. Return how many."""
    run = schema.run
    columns = [column for column in run.columns if column.name not in ("id", "uid", "environment_id")]
    updated = 0
    for uid, number in running.items():
        ended = select(run).where(run.c.uid == uid, run.c.status != "running")
        if (row := reader.execute(ended).mappings().one_or_none()) is not None:
            values = {column.name: row[column.name] for column in columns}
            values["environment_id"] = ids["environment"][row["environment_id"]]
            writer.execute(update(run).where(run.c.id == number).values(values))
            updated += 1
    return updated


def _supersede(reader: Connection, writer: Connection, ids: Ids) -> None:
    """Link each acceptance to the later one that replaced it, where this is missing."""
    table = schema.baseline
    query = select(table.c.id, table.c.superseded_by).where(table.c.superseded_by.is_not(None))
    for number, later in reader.execute(query):
        own = (table.c.id == ids["baseline"][number], table.c.superseded_by.is_(None))
        writer.execute(update(table).where(*own).values(superseded_by=ids["baseline"][later]))
