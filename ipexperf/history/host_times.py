"""Step times of hosts of one kind, for a comparison between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from ipexperf.history import medians
from ipexperf.history.database import reading
from ipexperf.history.schema import environment, run
from ipexperf.judge.hosts import HostVerdict, Sight, judge
from ipexperf.result import PRIMARY

if TYPE_CHECKING:
    from ipexperf.history.medians import Medians
    from ipexperf.history.store import History

DAY = 10
"""Length of a date in a time."""
LEAST_DAYS = 3
"""A host outside of fleets that measured on fewer days may be a container, whose name changes."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Equal hosts, with a verdict on each."""

    machine_key: str
    hosts: tuple[HostVerdict, ...]


@dataclass(frozen=True, slots=True)
class _Circumstances:
    """The host of a run, and the runs that it can be compared with."""

    host: str
    together: str
    """Equal for runs that can be compared: the run of a fleet, or the day and the software."""
    fleet: bool


def kinds(history: History, *, since: str | None = None, **filters: Any) -> list[Kind]:
    """The verdicts on the hosts of each kind of which there are several."""
    with reading(history._engine, history._name) as connection:  # noqa: SLF001 - private to this package
        series = medians.read(connection, [PRIMARY], since=since, **filters)
        wanted = {moment.uid for entry in series for moment in entry.runs}
        query = select(run.c.uid, run.c.started_at, run.c.commit_sha, run.c.meta, environment.c.doc)
        rows = connection.execute(query.join(environment, environment.c.id == run.c.environment_id)).mappings()
        runs = {row["uid"]: _circumstances(row) for row in rows if row["uid"] in wanted}
    lasting = _lasting(series, runs)
    sights: dict[str, list[Sight]] = defaultdict(list)
    for entry in series:
        for moment, value in zip(entry.runs, entry.values, strict=True):
            where = runs[moment.uid]
            if where is not None and value > 0 and (where.fleet or where.host in lasting):
                night = f"{moment.started_at[:DAY]} {where.together}"
                sights[entry.machine_key].append(Sight(night, where.host, entry.case.uid, value))
    return [
        Kind(machine_key, tuple(judge(of_kind)))
        for machine_key, of_kind in sorted(sights.items())
        if len({sight.host for sight in of_kind}) > 1
    ]


def _lasting(series: Sequence[Medians], runs: Mapping[str, _Circumstances | None]) -> set[str]:
    """The hosts that measured on several days."""
    days: dict[str, set[str]] = defaultdict(set)
    for moment in {moment for entry in series for moment in entry.runs}:
        if (where := runs[moment.uid]) is not None:
            days[where.host].add(moment.started_at[:DAY])
    return {host for host, dates in days.items() if len(dates) >= LEAST_DAYS}


def _circumstances(row: Mapping[Any, Any]) -> _Circumstances | None:
    """None for a run that several hosts shared."""
    host = host_of(row["meta"], row["doc"])
    if host is None:
        return None
    fleet = row["meta"].get("fleet") or {}
    software = row["doc"].get("software") or {}
    versions = [str(software.get(name)) for name in ("torch", "ipex")] + [str(row["commit_sha"])]
    return _Circumstances(host, str(fleet.get("run") or " ".join(versions)), bool(fleet))


def host_of(meta: Mapping[str, Any], document: Mapping[str, Any]) -> str | None:
    """The host of a run: its name in the fleet, or its own. None if several shared the run: each case has another."""
    hosts = list((meta.get("fleet") or {}).get("hosts") or ())
    if len(hosts) > 1:
        return None
    return hosts[0] if hosts else str((document.get("hardware") or {}).get("host") or "unknown")
