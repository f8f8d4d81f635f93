"""Write the results of searches for a culprit as rows, and read them. They belong to no run."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from ipexperf import lock as locks
from ipexperf.case import AGAINST, Case
from ipexperf.history.rows import case_of
from ipexperf.history.schema import bisection, case, lock
from ipexperf.history.statements import OF_CASE
from ipexperf.history.values import content_uid, finite, utc
from ipexperf.judge.bisection import BisectionRecord, Change
from ipexperf.ratio import numbers, of_numbers

SAME = ("machine_key", "good", "bad", "outcome", "reason", "measured", "differences")
"""Fields that have the same name in a row and in a record."""
NEIGHBOURS = ("last_good", "first_bad")


def row(search: BisectionRecord) -> dict[str, Any]:
    """Return the row of a search, without its case. Repeating a search from recorded answers gives the same uid."""
    values = finite(
        {
            **{name: getattr(search, name) for name in SAME},
            "culprits": [asdict(change) for change in search.culprits],
            "suspects": list(search.suspects),
            "ends": numbers(search.ends) if search.ends else None,
            **numbers(search.culprit),
            "ran": list(search.ran),
            **{name: _digest(getattr(search, name)) for name in NEIGHBOURS},
        }
    )
    times = {name: utc(getattr(search, name)) for name in ("started_at", "finished_at")}
    return {"uid": content_uid([search.case.uid, values]), **values, **times}


def lock_rows(search: BisectionRecord) -> list[dict[str, Any]]:
    """Return the rows of the locks of both neighbours."""
    texts = [text for name in NEIGHBOURS if (text := getattr(search, name))]
    return [{"uid": _digest(text), "text": text} for text in texts]


def _digest(text: str) -> str | None:
    return locks.parse(text, "the lock of a bisection").digest if text else None


def every(connection: Connection) -> list[BisectionRecord]:
    """Return the ends of all searches, oldest first."""
    query = (
        select(bisection, *OF_CASE)
        .join(case, case.c.id == bisection.c.case_id)
        .order_by(bisection.c.started_at, bisection.c.uid)
    )
    return [_record(values, connection) for values in connection.execute(query).mappings().all()]


def of_cases(searches: Iterable[BisectionRecord], cases: Collection[Case], machine_key: str) -> list[BisectionRecord]:
    """Return the searches of these cases on one machine. A case of a pair counts as the case without its other arm."""
    plain = {case.without(AGAINST) for case in cases}
    return [search for search in searches if search.machine_key == machine_key and search.case in plain]


def _record(values: RowMapping, connection: Connection) -> BisectionRecord:
    texts = {
        name: connection.execute(select(lock.c.text).where(lock.c.uid == values[name])).scalar_one_or_none() or ""
        for name in NEIGHBOURS
    }
    fields: dict[str, Any] = {name: values[name] for name in (*SAME, "started_at", "finished_at")}
    return BisectionRecord(
        case=case_of(values),
        **fields,
        culprits=tuple(Change(**change) for change in values["culprits"]),
        suspects=tuple(values["suspects"]),
        ends=of_numbers(values["ends"] or {}),
        culprit=of_numbers({**values}),
        ran=tuple(values["ran"]),
        last_good=texts["last_good"],
        first_bad=texts["first_bad"],
    )
