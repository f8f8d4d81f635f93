"""Delete old runs, or only their samples. Runs that baselines were accepted from stay."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import ColumnElement, Connection, Table, delete, func, select

from ipexperf.history import selectors
from ipexperf.history.schema import (
    baseline,
    case,
    environment,
    launch,
    measurement,
    metadata,
    paired,
    policy,
    round_,
    run,
    samples,
    seat,
    series,
    verdict,
)
from ipexperf.history.store import History

What = Literal["runs", "samples"]
FACTS = (samples, launch, verdict, measurement, paired, seat, round_)
ORPHANS = (series, case, policy, environment)
"""Tables whose rows are deleted when nothing references them."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """The deleted runs and rows of each table (or those that would be), and the older runs kept for baselines."""

    before: str
    runs: tuple[str, ...]
    rows: dict[str, int]
    kept: tuple[str, ...]


def prune(
    history: History,
    before: str,
    *,
    what: What = "runs",
    accepted: Collection[str] = (),
    delete_them: bool = False,
) -> Pruned:
    """Return what would be deleted of the runs before a date, moment or run. With `delete_them`, delete it.

    `accepted` names the runs that baseline files were made from. Runs that the history records as accepted stay anyway.
    """
    with history.writing() if delete_them else history.reading() as connection:
        begin = selectors.moment(connection, before)
        selectors.check_begun(connection)
        older = select(run.c.id, run.c.uid).where(run.c.started_at < begin).order_by(run.c.started_at, run.c.uid)
        old = {row.id: row.uid for row in connection.execute(older)}
        protected = {row.id for row in connection.execute(select(baseline.c.run_id.label("id")).distinct())}
        protected |= {number for number, uid in old.items() if uid in accepted}
        going = [number for number in old if number not in protected]
        tables = (samples,) if what == "samples" else FACTS
        rows = {table.name: sum(_count(connection, table, part) for part in parts(going)) for table in tables}
        if delete_them:
            _delete(connection, going, tables, runs=what == "runs")
    return Pruned(
        before=begin,
        runs=tuple(old[number] for number in going),
        rows=rows,
        kept=tuple(uid for number, uid in old.items() if number in protected),
    )


def parts(numbers: list[int]) -> list[list[int]]:
    """Split values into parts, because a statement takes a limited number."""
    return [numbers[begin : begin + 500] for begin in range(0, len(numbers), 500)]


def _of(table: Table, numbers: list[int]) -> ColumnElement[bool]:
    if "run_id" in table.c:
        return table.c.run_id.in_(numbers)
    return table.c.round_id.in_(select(round_.c.id).where(round_.c.run_id.in_(numbers)))


def _count(connection: Connection, table: Table, numbers: list[int]) -> int:
    return int(connection.execute(select(func.count()).select_from(table).where(_of(table, numbers))).scalar_one())


def _delete(connection: Connection, going: list[int], tables: tuple[Table, ...], *, runs: bool) -> None:
    for part in parts(going):
        for table in tables:
            connection.execute(delete(table).where(_of(table, part)))
        if runs:
            connection.execute(delete(run).where(run.c.id.in_(part)))
    columns = [column for table in metadata.tables.values() for column in table.columns]
    for table in ORPHANS if runs else ():
        references = [column for column in columns if column.references(table.c.id)]
        unused = [~select(column).where(column == table.c.id).exists() for column in references]
        connection.execute(delete(table).where(*unused))
