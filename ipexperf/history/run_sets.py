"""Selectors of several runs: those of a fleet run, a day, a branch, a commit, or a version of torch or IPEX."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipexperf.errors import HistoryError
from ipexperf.history import selectors, statements
from ipexperf.history.schema import environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection, Row

SOFTWARE = re.compile(r"(torch|ipex)=(\S+)")
COMMIT = 10
"""Leading characters of a commit that a person needs."""


@dataclass(frozen=True, slots=True)
class Member:
    """One run of a set."""

    uid: str
    together: str
    """The run of a fleet that it belongs to, or itself."""
    host: str | None
    """None if several hosts shared it: then its cases are each of another one."""
    started_at: str
    commit: str | None
    torch: str | None
    ipex: str | None

    @property
    def of_fleet(self) -> bool:
        return self.together != self.uid

    @property
    def software(self) -> str:
        commit = f", commit {self.commit[:COMMIT]}" if self.commit else ""
        return f"torch {self.torch or '-'}, IPEX {self.ipex or '-'}{commit}"


def members(connection: Connection) -> list[Member]:
    """Return all runs, newest first."""
    return [_member(row) for row in connection.execute(statements.runs().add_columns(environment.c.doc))]


def _member(row: Row[Any]) -> Member:
    fleet = row.meta.get("fleet") or {}
    versions = (row.commit, row.torch_version, row.ipex_version)
    return Member(row.uid, str(fleet.get("run") or row.uid), _host_of(row.meta, row.doc), row.started_at, *versions)


def _host_of(meta: Mapping[str, Any], document: Mapping[str, Any]) -> str | None:
    """The host of a run: its name in the fleet, or its own. None if several shared the run: each case has another."""
    hosts = list((meta.get("fleet") or {}).get("hosts") or ())
    if len(hosts) > 1:
        return None
    return hosts[0] if hosts else str((document.get("hardware") or {}).get("host") or "unknown")


def resolve(connection: Connection, selector: str) -> list[Member]:
    """Return the runs that a selector names, newest first. Raise HistoryError if there are none.

    A day, a branch, a commit, `torch=2.9` and `ipex=2.8` name all runs that match. Whatever names one run names its
    whole fleet run, `last~1` the fleet run before the last.
    """
    text = selector.strip()
    selectors.check_begun(connection)
    every = members(connection)
    base, back = selectors.parts(text)
    matching = _by_set(every, base) or _by_software(every, base) or _by_selector(connection, every, base, text)
    if not matching:
        selectors.unknown(connection, text)
    single = base in (*selectors.NEWEST, *selectors.OLDEST) or re.fullmatch(selectors.MOMENT, base) is not None
    named = len(matching) == 1 and matching[0].uid.startswith(base.lower())
    if not (single or named or back is not None):
        return matching
    sets = list(dict.fromkeys(member.together for member in matching))
    if (back or 0) >= len(sets):
        selectors.unknown(connection, text)
    return [member for member in every if member.together == sets[back or 0]]


def _by_set(every: Sequence[Member], base: str) -> list[Member]:
    """The runs of the fleet run whose name begins so."""
    start = base.lower()
    if len(base) < selectors.SHORTEST:
        return []
    sets = {member.together for member in every if member.together.startswith(start)}
    if len(sets) > 1:
        raise HistoryError(f"{base!r} is ambiguous: it begins {', '.join(sorted(sets)[:5])}.")
    return [member for member in every if member.together in sets]


def _by_software(every: Sequence[Member], base: str) -> list[Member]:
    """The runs with a version: 2.8 is any 2.8.x, and 2.8.0 also 2.8.0+cpu."""
    match = SOFTWARE.fullmatch(base)
    if match is None:
        return []
    name, version = match.groups()
    matching = [member for member in every if _is(getattr(member, name), version)]
    if not matching:
        versions = sorted({str(getattr(member, name)) for member in every if getattr(member, name)})
        raise HistoryError(f"no run has {base}: this history has {', '.join(versions) or 'no version of it'}.")
    return matching


def _is(version: str | None, wanted: str) -> bool:
    return version is not None and (version == wanted or version.startswith((f"{wanted}.", f"{wanted}+")))


def _by_selector(connection: Connection, every: Sequence[Member], base: str, text: str) -> list[Member]:
    uids = set(connection.scalars(selectors.matches(connection, base, text)))
    return [member for member in every if member.uid in uids]
