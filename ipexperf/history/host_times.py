"""Step times of hosts of one kind, for a comparison between them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipexperf.history import medians, selectors
from ipexperf.history.database import reading
from ipexperf.judge.hosts import HostVerdict, Sight, judge
from ipexperf.result import PRIMARY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ipexperf.history.selectors import Member
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


def kinds(history: History, *, since: str | None = None, **filters: Any) -> list[Kind]:
    """The verdicts on the hosts of each kind of which there are several."""
    with reading(history._engine, history._name) as connection:  # noqa: SLF001 - private to this package
        series = medians.read(connection, [PRIMARY], since=since, **filters)
        wanted = {moment.uid for entry in series for moment in entry.runs}
        runs = {member.uid: member for member in selectors.members(connection) if member.uid in wanted}
    lasting = _lasting(runs.values())
    sights: dict[str, list[Sight]] = defaultdict(list)
    for entry in series:
        case = entry.case.uid
        for moment, value in zip(entry.runs, entry.values, strict=True):
            member = runs[moment.uid]
            if member.host is not None and value > 0 and (member.of_fleet or member.host in lasting):
                # Comparable are the runs of a fleet, or those of a day with the same software.
                night = f"{moment.started_at[:DAY]} {member.together if member.of_fleet else member.software}"
                sights[entry.machine_key].append(Sight(night, member.host, case, value))
    return [
        Kind(machine_key, tuple(judge(of_kind)))
        for machine_key, of_kind in sorted(sights.items())
        if len({sight.host for sight in of_kind}) > 1
    ]


def _lasting(runs: Iterable[Member]) -> set[str]:
    """The hosts that measured on several days."""
    days: dict[str, set[str]] = defaultdict(set)
    for member in runs:
        if member.host is not None:
            days[member.host].add(member.started_at[:DAY])
    return {host for host, dates in days.items() if len(dates) >= LEAST_DAYS}
