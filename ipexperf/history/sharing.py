"""Copy runs for others, without the names of hosts, users and folders."""

from __future__ import annotations

import getpass
import json
import platform
import re
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from sqlalchemy import JSON, Column, Table, Text, delete, select, update

from ipexperf.errors import HistoryError
from ipexperf.history import pruning, schema, sqlite_files
from ipexperf.history.database import translated, writing
from ipexperf.history.rows import CASE, acceptance_uid, case_of_texts
from ipexperf.history.schema import baseline, bisection, lock, run, selftest
from ipexperf.history.selectors import resolve
from ipexperf.history.store import History
from ipexperf.history.values import content_uid, series_uid

AS_THEY_ARE = frozenset(
    (
        *("machine_key", "device", "dtype", "mode", "stack", "metric", "unit", "outcome", "status", "schedule", "role"),
        *("session", "commit_sha", "torch_version", "ipex_version"),
    )
)
"""Text columns without names of hosts, users or folders. The program compares them, so they must stay."""
NOBODY = frozenset(("root", "user", "runner", "localhost", "vm", "worker", "ubuntu", "jenkins", "nobody", "docker"))
"""Names of hosts and users that identify nobody, and are also ordinary words or words of the program."""
HOME = re.compile(r"(?<![\w.])/(?:home|Users|export/home|nfs/home)/([\w.-]+)")
"""A home folder. The group is the user's name."""
PATH = re.compile(r"(?<![\w.:/~\\-])(?:~[\w.-]*|/[\w.+@-]+)(?:/[\w.+@-]+)*/?")
"""A path, but not inside a word, a relative path or the address of a page."""
ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
SHORTEST = 4
"""Shorter names are hidden, but not searched for in the bytes of the copy, where they occur by chance."""


@dataclass(frozen=True, slots=True)
class Shared:
    """The content of a copy: counts of its runs and of the names hidden in it."""

    path: Path
    runs: int
    hosts: int
    users: int
    folders: int
    logs: int
    """Logs that were left out."""


class Scrubber:
    """Hides names in texts. The same name has the same stand-in each time, and two names never have one stand-in."""

    def __init__(self, hosts: Collection[str], users: Collection[str], words: Collection[str] = ()) -> None:
        """Hide these hosts, users and other words, and all folders."""
        self.hidden: dict[str, str] = {}
        """The replacement of each name."""
        kinds = {"word": dict.fromkeys(words), "host": dict.fromkeys(hosts), "user": dict.fromkeys(users)}
        for kind, names in kinds.items():
            for number, name in enumerate(names, start=1):
                self.hidden.setdefault(name, f"{kind}-{number}")
        self._kinds = kinds
        self._met: set[str] = set()
        self.folders: dict[str, str] = {}
        """The replacement of each folder that was met so far."""
        longest_first = sorted(self.hidden, key=len, reverse=True)
        self._names = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, longest_first))})(?![A-Za-z0-9])")

    def text(self, value: str) -> str:
        """The text with its folders, mail addresses and known names hidden."""
        value = ADDRESS.sub("somebody@example.org", PATH.sub(self._last_part, value))
        return self._names.sub(self._stand_in, value) if self.hidden else value

    def met(self, kind: str) -> int:
        """The number of names of this kind that were met: `host`, `user` or `word`."""
        return len(self._met & self._kinds[kind].keys())

    def _stand_in(self, match: re.Match[str]) -> str:
        self._met.add(match[0])
        return self.hidden[match[0]]

    def document(self, value: Any) -> Any:
        """The same for every text and key of a JSON document."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.document(part) for part in value]
        if isinstance(value, dict):
            return {self.text(key): self.document(part) for key, part in value.items()}
        return value

    def _last_part(self, match: re.Match[str]) -> str:
        """The last part of a path. The folders before it may have names."""
        path = match[0].rstrip("/")
        begin = len(path) if HOME.fullmatch(path) else path.rfind("/") + 1
        folder, last = path[:begin], path[begin:]
        if folder in ("", "/"):
            return match[0]  # such as /tmp
        stand_in = self.folders.setdefault(folder.rstrip("/"), f"folder-{len(self.folders) + 1}")
        return f"{stand_in}/{last}" if last else stand_in


def share(
    source: str, copy: Path, runs: Sequence[str] = (), *, words: Sequence[str] = (), keep_logs: bool = False
) -> Shared:
    """Write these runs (default: all) to a new file. Raise HistoryError if a name is left in it; it is deleted then."""
    sqlite_files.backup(source, copy)
    try:
        with closing(History.open(copy, create=False)) as history:
            count = _keep_only(history, runs)
        with translated(f"history {copy}"), closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            scrubber, logs = _scrub(connection, words, keep_logs=keep_logs)
            connection.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
            connection.execute("VACUUM")  # what was deleted or replaced is still in free pages
        _check_nothing_left(copy, scrubber)
        sqlite_files.check(copy, recompute=False)
    except BaseException:
        sqlite_files.delete(copy)
        raise
    return Shared(copy, count, scrubber.met("host"), scrubber.met("user"), len(scrubber.folders), logs)


def _keep_only(history: History, runs: Sequence[str]) -> int:
    """Delete all other runs, and what belongs to no run. Return how many are left."""
    with writing(history._engine, history._name) as connection:  # noqa: SLF001 - private to this package
        numbers = {row.uid: row.id for row in connection.execute(select(run.c.id, run.c.uid))}
        if not numbers:
            raise HistoryError("the history has no run to share.")
        if not runs:
            return len(numbers)
        shared = {numbers[resolve(connection, selector)] for selector in runs}
        going = sorted(set(numbers.values()) - shared)
        for part in pruning.parts(going):
            theirs = select(baseline.c.id).where(baseline.c.run_id.in_(part))
            superseded = baseline.c.superseded_by.in_(theirs)
            connection.execute(update(baseline).where(superseded).values(superseded_by=None))
            connection.execute(delete(baseline).where(baseline.c.run_id.in_(part)))
        for table in (selftest, bisection, lock):
            connection.execute(delete(table))
        pruning.delete_runs(connection, going)
        return len(shared)


def _scrub(connection: sqlite3.Connection, words: Sequence[str], *, keep_logs: bool) -> tuple[Scrubber, int]:
    """Hide names in every text of every table. Return the scrubber, and the number of logs that were left out."""
    logs = 0
    connection.execute("BEGIN IMMEDIATE")
    if not keep_logs:
        logs = connection.execute("UPDATE launch SET log = '' WHERE log != ''").rowcount
    scrubber = Scrubber(*_names(connection), tuple(words))
    for table, column in _text_columns():
        if column.name not in AS_THEY_ARE:
            _scrub_column(connection, scrubber, table, column)
    _name_by_content(connection)
    connection.execute("COMMIT")
    return scrubber, logs


def _names(connection: sqlite3.Connection) -> tuple[list[str], list[str]]:
    """The names of hosts and users that the history knows of, and those of this machine."""
    hosts, users = {platform.node(), platform.node().partition(".")[0]}, {getpass.getuser()}
    for (text,) in connection.execute("SELECT doc FROM environment"):
        host = (json.loads(text).get("hardware") or {}).get("host")
        hosts |= {host, host.partition(".")[0]} if isinstance(host, str) else set()
    for (text,) in connection.execute("SELECT meta FROM run"):
        hosts |= set((json.loads(text).get("fleet") or {}).get("hosts") or ())
    for (text,) in connection.execute("SELECT accepted_by FROM baseline"):
        users |= {text.partition("<")[0].strip()}
    for table, column in _text_columns():
        for (text,) in connection.execute(f'SELECT DISTINCT "{column.name}" FROM "{table.name}"'):  # noqa: S608 - ours
            users |= set(HOME.findall(text)) if isinstance(text, str) else set()
    return _telling(hosts), _telling(users)


def _telling(names: Collection[str]) -> list[str]:
    return sorted(name for name in names if len(name) > 1 and name.lower() not in NOBODY)


def _text_columns() -> Iterator[tuple[Table, Column[Any]]]:
    """Every column that holds texts or documents. Uids and times have a fixed width, and are none."""
    for table in schema.metadata.sorted_tables:
        yield from (
            (table, column) for column in table.columns if isinstance(cast("Any", column.type).plain, Text | JSON)
        )


def _scrub_column(connection: sqlite3.Connection, scrubber: Scrubber, table: Table, column: Column[Any]) -> None:
    keys = [key.name for key in table.primary_key]
    where = " AND ".join(f'"{key}" = ?' for key in keys)
    chosen = ", ".join(f'"{name}"' for name in (*keys, column.name))
    query = f'SELECT {chosen} FROM "{table.name}" WHERE "{column.name}" != \'\''  # noqa: S608 - names of ours
    change = f'UPDATE "{table.name}" SET "{column.name}" = ? WHERE {where}'  # noqa: S608 - names of ours
    rows = connection.execute(query).fetchall()
    document = isinstance(cast("Any", column.type).plain, JSON)
    for *key, text in rows:
        if not isinstance(text, str):
            continue
        new = json.dumps(scrubber.document(json.loads(text))) if document else scrubber.text(text)
        if new != text:
            connection.execute(change, (new, *key))


def _name_by_content(connection: sqlite3.Connection) -> None:
    """Give what was scrubbed the uid of its new content: the old one would let somebody try names until one fits."""
    for number, text in connection.execute("SELECT id, doc FROM environment").fetchall():
        uid = content_uid(json.loads(text))
        connection.execute("UPDATE environment SET uid = ? WHERE id = ?", (uid, number))
    cases = connection.execute(f'SELECT id, {", ".join(CASE)}, params FROM "case"').fetchall()  # noqa: S608 - ours
    for number, *values in cases:
        connection.execute('UPDATE "case" SET uid = ? WHERE id = ?', (case_of_texts(*values).uid, number))
    series = connection.execute(
        'SELECT s.id, c.uid, s.machine_key, s.metric FROM series s JOIN "case" c ON c.id = s.case_id'
    ).fetchall()
    for number, case_uid, machine_key, metric in series:
        uid = series_uid(case_uid, machine_key, metric)
        connection.execute("UPDATE series SET uid = ? WHERE id = ?", (uid, number))

    acceptances = connection.execute(
        "SELECT b.id, s.uid, r.uid, b.accepted_at, b.accepted_by, b.reason FROM baseline b "
        "JOIN series s ON s.id = b.series_id JOIN run r ON r.id = b.run_id"
    ).fetchall()
    for number, name, run_uid, *accepted in acceptances:
        uid = acceptance_uid(name, run_uid, dict(zip(("accepted_at", "accepted_by", "reason"), accepted, strict=True)))
        connection.execute("UPDATE baseline SET uid = ? WHERE id = ?", (uid, number))
    texts = [column.name for column in bisection.columns if column.name not in ("id", "uid", "case_id")]
    searches = connection.execute(
        f"SELECT b.id, c.uid, {', '.join(f'b.{name}' for name in texts)} FROM bisection b "  # noqa: S608 - names of ours
        'JOIN "case" c ON c.id = b.case_id'
    ).fetchall()
    for number, *values in searches:
        connection.execute("UPDATE bisection SET uid = ? WHERE id = ?", (content_uid(values), number))


def _check_nothing_left(copy: Path, scrubber: Scrubber) -> None:
    """Look for every hidden name in the very bytes of the file."""
    content = copy.read_bytes()
    for name in scrubber.hidden:
        whole = rb"(?<![A-Za-z0-9])%s(?![A-Za-z0-9])" % re.escape(name.encode())
        if len(name) >= SHORTEST and re.search(whole, content):
            raise HistoryError(f"{copy} was deleted again: {name!r} is still in it, where it cannot be hidden.")
