"""The status of a host of a fleet, in small files beside its journals. The process that measures writes them."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ipexperf import scratch
from ipexperf.conduct import interrupts
from ipexperf.tools import codec

ENDING = ".status"
DAY = 86400.0
LONGEST = 2**18
"""Size in bytes from which a record of groups drops those that are older than a day."""

State = Literal["quiet", "waiting", "measuring"]


@dataclass(frozen=True, slots=True)
class Status:
    """The work of one run's process on a host. Times are seconds since 1970 by the host's clock."""

    run: str
    state: State
    """`quiet`: nothing to measure right now. `waiting`: for its devices, which somebody else has."""
    since: float
    group: str = ""
    round: int = 0
    rounds: int = 0
    """How many rounds the group has, as far as is known."""
    queue: int = 0
    """The groups that wait for this one to end."""
    said: str = ""
    """The last line of progress about the group."""
    alone: bool = False
    """Whether its pytest is gone: it finishes its group, and keeps it."""


class StatusFile:
    """The status of one run on this host, in a file that is replaced atomically."""

    def __init__(self, journal: Path, status: Status) -> None:
        """`journal` is the journal of the same run. While its lock is held, the process of the status is alive."""
        self.path = path_of(journal)
        self._status = status
        self._lock = threading.Lock()
        self._over = False
        self.problem = ""
        """Why the file could not be written, or an empty text."""
        self.change()

    def change(self, **fields: Any) -> None:
        """Change some fields. Threads may call this at the same time."""
        with interrupts.deferred(), self._lock:
            if self._over:
                return
            self._status = replace(self._status, **fields)
            try:
                write(self.path, json.dumps(codec.plain(self._status)))
            except OSError as error:
                self.problem = error.strerror or str(error)

    def remove(self) -> None:
        """Remove the file, because the process ends."""
        with self._lock:
            self._over = True
            self.path.unlink(missing_ok=True)


def path_of(journal: Path) -> Path:
    return journal.with_name(journal.name + ENDING)


def read(journal: Path) -> Status | None:
    """The status beside a journal. None if there is none, or if another version of this program wrote it."""
    with contextlib.suppress(OSError, ValueError):
        return codec.record(Status, json.loads(path_of(journal).read_text(encoding="utf-8")))
    return None


def write(path: Path, text: str) -> None:
    """Write a file atomically, so that no reader sees a part of it."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


@dataclass(frozen=True, slots=True)
class GroupSpan:
    """A group that was measured, from its beginning to its end."""

    begin: float
    end: float
    run: str = ""
    group: str = ""


class Activity:
    """The groups that a host measured, in a file. Processes of several runs may add to it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, stretch: GroupSpan) -> str:
        """Append a group. Return why it cannot be written, or an empty text."""
        try:
            scratch.made(self.path.parent)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(codec.plain(stretch)) + "\n")
            if self.path.stat().st_size > LONGEST:
                lines = [json.dumps(codec.plain(recent)) for recent in self.since(stretch.end - DAY)]
                write(self.path, "".join(f"{line}\n" for line in lines))
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def since(self, begin: float) -> list[GroupSpan]:
        """The groups that ended after a moment. Lines that cannot be read are left out."""
        stretches = []
        with contextlib.suppress(FileNotFoundError), self.path.open(encoding="utf-8") as file:
            for line in file:
                with contextlib.suppress(ValueError):
                    stretches.append(codec.record(GroupSpan, json.loads(line)))
        return [stretch for stretch in stretches if stretch.end > begin]


def share(stretches: Iterable[GroupSpan], begin: float, end: float) -> float:
    """The share of a time in which anything was measured. What overlaps counts once."""
    busy, until = 0.0, begin
    for stretch in sorted(stretches, key=lambda stretch: stretch.begin):
        first, last = max(stretch.begin, until), min(stretch.end, end)
        if last > first:
            busy += last - first
            until = last
    return busy / (end - begin) if end > begin else 0.0
