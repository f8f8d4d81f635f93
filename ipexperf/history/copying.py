"""Copy one history into another, of whatever kind: a file into a server, or back. Copying twice changes nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Table, select, update
from sqlalchemy.dialects import postgresql, sqlite

from ipexperf.history import schema, store
from ipexperf.history.database import reading, writing
from ipexperf.history.merging import DIMENSIONS, FACTS, Merged

if TYPE_CHECKING:
    from ipexperf.history.store import History

ROWS = 500
"""How many rows are copied in one statement."""
Ids = Mapping[str, Mapping[int, int]]
"""For each table the local number of a row here, by its number there."""


def copy(source: History, target: History, *, newer: bool = False) -> Merged:
    """Copy all rows that the target lacks, completely or not at all. Rows that both have stay as they are.

    With `newer`, what the source has of a run that is still running in the target replaces what is there.
    """
    with reading(source._engine, source._name) as there, writing(target._engine, target._name) as here:  # noqa: SLF001 - private to this package
        _make_room(there, here, newer=newer)
        ids: dict[str, dict[int, int]] = {}
        counts: Counter[str] = Counter()
        for table in (*DIMENSIONS, *FACTS):
            counts[table.name] = sum(_take(here, table, part, ids) for part in _parts(there, table))
            if "uid" in table.c:
                ids[table.name] = dict(_same(there, here, table))
        updated = _go_on(there, here, ids)
        _supersede(there, here, ids)
    return Merged(
        path=source._name,  # noqa: SLF001 - as above
        runs=counts["run"],
        cases=counts["case"],
        measurements=counts["measurement"],
        launches=counts["launch"],
        trials=counts["selftest"],
        bisections=counts["bisection"],
        rounds=counts["round"],
        updated=updated,
    )


def _parts(there: Connection, table: Table) -> Iterator[Sequence[Any]]:
    order = [table.c.id] if "id" in table.c else list(table.primary_key)
    yield from there.execute(select(table).order_by(*order)).mappings().partitions(ROWS)


def _take(here: Connection, table: Table, rows: Sequence[Mapping[str, Any]], ids: Ids) -> int:
    """Insert the missing ones of these rows. Row ids are local, so references are translated."""
    values = []
    for row in rows:
        value: dict[str, Any] = {}
        for column in table.columns:
            key = next(iter(column.foreign_keys), None)
            own = key is not None and key.column.table is table
            if column.name == "id" and "uid" in table.c:
                continue
            if own:
                value[column.name] = None  # linked afterwards
            elif key is not None and row[column.name] is not None:
                value[column.name] = ids[key.column.table.name][row[column.name]]
            else:
                value[column.name] = row[column.name]
        values.append(value)
    insert = postgresql.insert if here.dialect.name == "postgresql" else sqlite.insert
    statement = insert(table).on_conflict_do_nothing().returning(*table.primary_key)
    return len(here.execute(statement, values).all())


def _same(there: Connection, here: Connection, table: Table) -> Iterator[tuple[int, int]]:
    """The numbers of each row of the source, there and here, by its uid."""
    query = select(table.c.id, table.c.uid).order_by(table.c.id)
    for part in there.execute(query).partitions(ROWS):
        uids = [row.uid for row in part]
        numbers = {
            row.uid: row.id for row in here.execute(select(table.c.id, table.c.uid).where(table.c.uid.in_(uids)))
        }
        yield from ((row.id, numbers[row.uid]) for row in part)


def _launches(connection: Connection) -> dict[tuple[str, str], int]:
    """How many launches each case has in each run, by their uids."""
    query = (
        select(schema.run.c.uid, schema.case.c.uid)
        .join_from(schema.launch, schema.run, schema.launch.c.run_id == schema.run.c.id)
        .join(schema.case, schema.launch.c.case_id == schema.case.c.id)
    )
    return Counter((run, case) for run, case in connection.execute(query))


def _make_room(there: Connection, here: Connection, *, newer: bool) -> None:
    """Delete cases of an unfinished run that the source has more launches of, or all that it has if it is newer."""
    running = {
        row.uid: row.id
        for row in here.execute(select(schema.run.c.uid, schema.run.c.id).where(schema.run.c.status == "running"))
    }
    offered = {key: count for key, count in _launches(there).items() if key[0] in running}
    if not offered:
        return
    mine: dict[tuple[str, str], int] = defaultdict(int, _launches(here))
    for (run, case), count in offered.items():
        if newer or 0 < mine[run, case] < count:
            store.withdraw(here, running[run], case)


def _go_on(there: Connection, here: Connection, ids: Ids) -> int:
    """Complete the runs that are still running here, and have ended in the source."""
    run = schema.run
    columns = [column for column in run.columns if column.name not in ("id", "uid", "environment_id")]
    updated = 0
    for row in there.execute(select(run).where(run.c.status != "running")).mappings():
        values = {column.name: row[column.name] for column in columns}
        values["environment_id"] = ids["environment"][row["environment_id"]]
        unfinished = (run.c.id == ids["run"][row["id"]], run.c.status == "running")
        updated += here.execute(update(run).where(*unfinished).values(values)).rowcount
    return updated


def _supersede(there: Connection, here: Connection, ids: Ids) -> None:
    """Link each acceptance to the later one that replaced it, where this is missing."""
    table = schema.baseline
    query = select(table.c.id, table.c.superseded_by).where(table.c.superseded_by.is_not(None))
    for number, later in there.execute(query):
        mine = (table.c.id == ids["baseline"][number], table.c.superseded_by.is_(None))
        here.execute(update(table).where(*mine).values(superseded_by=ids["baseline"][later]))
