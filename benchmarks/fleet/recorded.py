"""Print what a history has of the runs of a fleet: each case by its host, and rounds that are there twice.

A case is complete if all of its launches, so many as the second argument says, ended well. Its values tell whether it
is the measurement of another run, which a resumed run took over from its host, or one of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from sqlalchemy import func, select

from ipexperf.history import History
from ipexperf.history.schema import round_, run
from ipexperf.result import PRIMARY


def cases(history: History, uid: str, launches: int) -> Iterator[dict[str, Any]]:
    for one in history.measurements(uid):
        values = one.values.get(PRIMARY, ())
        whole = len(values) >= launches and all(launch.outcome == "ok" for launch in one.counted)
        yield {"case": one.case.id, "values": list(values) if whole else None}


def main() -> None:
    runs = []
    with History.open(sys.argv[1], create=False) as history, history._engine.connect() as connection:  # noqa: SLF001 - it counts rows
        for row in connection.execute(select(run.c.uid, run.c.meta, run.c.status)).all():
            hosts = list(row.meta["fleet"]["hosts"])
            host = hosts[0] if len(hosts) == 1 else ""
            recorded = list(cases(history, row.uid, int(sys.argv[2])))
            runs.append({"host": host, "status": row.status, "cases": recorded})
        groups = select(round_.c.run_id, round_.c.name, round_.c.number).group_by(*round_.c["run_id", "name", "number"])
        twice = [f"round {one.number} of {one.name}" for one in connection.execute(groups.having(func.count() > 1))]
        rounds = connection.execute(select(func.count()).select_from(round_)).scalar_one()
    sys.stdout.write(json.dumps({"runs": runs, "rounds": rounds, "rounds_twice": twice}))


if __name__ == "__main__":
    main()
