"""Print what a history has of the runs of a fleet: each case by its host, and rounds that are there twice."""

from __future__ import annotations

import json
import sys

from sqlalchemy import func, select

from ipexperf.history import History
from ipexperf.history.rows import case_of
from ipexperf.history.schema import case, launch, round_, run


def main() -> None:
    cases, running = [], 0
    with History.open(sys.argv[1], create=False) as history, history._engine.connect() as connection:  # noqa: SLF001 - it counts rows
        for row in connection.execute(select(run.c.id, run.c.meta, run.c.status)).all():
            running += row.status == "running"
            hosts = list(row.meta["fleet"]["hosts"])
            host = hosts[0] if len(hosts) == 1 else ""
            own = select(launch.c.case_id).where(launch.c.run_id == row.id).distinct()
            query = select(case).where(case.c.id.in_(own))
            cases += [
                (case_of(one).id, host) for one in connection.execute(query).mappings() if row.status != "running"
            ]
        groups = select(round_.c.run_id, round_.c.name, round_.c.number).group_by(*round_.c["run_id", "name", "number"])
        twice = [f"round {one.number} of {one.name}" for one in connection.execute(groups.having(func.count() > 1))]
    sys.stdout.write(json.dumps({"cases": cases, "running": running, "rounds_twice": twice}))


if __name__ == "__main__":
    main()
