"""The files of a host: the journal and the status of each run, and which groups it measured when.

The process that measures writes them. A snapshot of them is for people.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal

from ipexperf import scratch
from ipexperf.conduct import interrupts
from ipexperf.errors import UsageError
from ipexperf.tools import codec
from ipexperf.tools.fleet import messages
from ipexperf.tools.fleet.messages import GroupProgress

ENDING = ".jsonl"
BEFORE_CODE = "+"
"""Separates the run from the code in a journal's name."""
LINE_SECONDS = 30.0
POLL_SECONDS = 0.2
DAY = 86400.0
LONGEST = 2**18
"""Size in bytes from which the file of measured groups drops those that are older than a day."""


@dataclass(frozen=True, slots=True)
class Status:
    """The work of one run's process on a host. Times are seconds since 1970 by the host's clock."""

    run: str
    state: Literal["quiet", "waiting", "measuring"]
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


def runs_of(host: Path) -> Path:
    """Where the host keeps its journals."""
    return host / ".ipexperf" / "fleet" / "runs"


class Journal:
    """The results of one run of some code until the controller has all of them, and the status of its process.

    An open journal is locked: its process is alive, and a second one that opens it waits.
    """

    def __init__(
        self, folder: Path, run: str, code: str, say: Callable[[str], None] = lambda _: None, *, only: bool = False
    ) -> None:
        """`code` is the digest of the code, because results of other code are not reused.

        `only`: the run is new, so whoever has the journal open is another host with the same folder. Raise UsageError.
        """
        if not run or Path(run).name != run or BEFORE_CODE in run:
            raise UsageError(f"--perf-resume {run!r} is no run of a fleet")
        try:
            scratch.made(folder)
            self.path = folder / f"{run}{BEFORE_CODE}{code}{ENDING}"
            self._file: IO[str] = self.path.open("a+", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{folder}: nothing can be kept there: {error.strerror}") from None
        self._status = Status(run, "quiet", time.time())
        self._changing = threading.Lock()
        announced_at = -math.inf
        while not _locked(self._file, fcntl.LOCK_EX):
            if only:
                self._file.close()
                raise UsageError(
                    f"{folder.parents[2]} is the folder of another host too: "
                    "give each its own, by ipexperf fleet join --folder"
                )
            if time.monotonic() - announced_at > LINE_SECONDS:
                announced_at = time.monotonic()
                say(f"waiting for the group that is still being measured here for run {run}")
            time.sleep(POLL_SECONDS)

    def add(self, text: str) -> None:
        """Append a line and sync it to the disk. Raises OSError if the disk is full."""
        self._file.write(text + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def complete(self) -> list[GroupProgress]:
        """The groups that were completed, in the order of their requests, each with all of its rounds.

        A group that was measured twice is there twice. Groups that were stopped are left out.
        """
        self._file.seek(0)
        whole: dict[int, GroupProgress] = {}
        for progress in _lines(self._file):
            before = whole.get(progress.number)
            earlier = before.rounds if before is not None else ()
            whole[progress.number] = replace(progress, rounds=(*earlier, *progress.rounds))
        return [
            group
            for group in whole.values()
            if group.over and not any(measured.cut for _, measured in group.measurements)
        ]

    def show(self, **fields: Any) -> None:
        """Change some fields of the status. Threads may call this at the same time."""
        with interrupts.deferred(), self._changing:
            if self._file.closed:
                return
            self._status = replace(self._status, **fields)
            with contextlib.suppress(OSError):  # on a full disk, which `add` reports
                _write(status_of(self.path), json.dumps(codec.plain(self._status)))

    def close(self) -> None:
        """Give the lock back, and remove the status. The journal stays."""
        with self._changing:
            with contextlib.suppress(OSError):  # `add` has reported what cannot be written
                self._file.close()
            status_of(self.path).unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete both, because the controller has everything."""
        self.path.unlink(missing_ok=True)
        self.close()


def _locked(file: IO[str], kind: int) -> bool:
    """Whether the file could be locked now."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lines(file: IO[str]) -> Iterator[GroupProgress]:
    """Yield the lines that can be read. The last one may be cut if the host lost its power."""
    for text in file:
        with contextlib.suppress(ValueError):
            reply = messages.read(text)
            if isinstance(reply, GroupProgress):
                yield reply


def status_of(journal: Path) -> Path:
    """The file with the status of the process that writes a journal."""
    return journal.with_name(f"{journal.name}.status")


def _write(path: Path, text: str) -> None:
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


def _spans_of(host: Path) -> Path:
    return host / ".ipexperf" / "fleet" / "activity.jsonl"


def remember(host: Path, span: GroupSpan) -> None:
    """Record that a host measured a group. Processes of several runs may do so at the same time."""
    path = _spans_of(host)
    with contextlib.suppress(OSError):  # on a full disk, which the journal reports
        scratch.made(path.parent)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(codec.plain(span)) + "\n")
        if path.stat().st_size > LONGEST:
            lines = [json.dumps(codec.plain(recent)) for recent in spans(host, span.end - DAY)]
            _write(path, "".join(f"{line}\n" for line in lines))


def spans(host: Path, begin: float) -> list[GroupSpan]:
    """The groups of a host that ended after a moment. Lines that cannot be read are left out."""
    found = []
    with contextlib.suppress(FileNotFoundError), _spans_of(host).open(encoding="utf-8") as file:
        for line in file:
            with contextlib.suppress(ValueError):
                found.append(codec.record(GroupSpan, json.loads(line)))
    return [span for span in found if span.end > begin]


def share(stretches: Iterable[GroupSpan], begin: float, end: float) -> float:
    """The share of a time in which anything was measured. What overlaps counts once."""
    busy, until = 0.0, begin
    for stretch in sorted(stretches, key=lambda stretch: stretch.begin):
        first, last = max(stretch.begin, until), min(stretch.end, end)
        if last > first:
            busy += last - first
            until = last
    return busy / (end - begin) if end > begin else 0.0


@dataclass(frozen=True, slots=True)
class JournalSummary:
    """A journal on a host, for people."""

    run: str
    busy: bool
    """Whether a process still writes it."""
    status: Status | None = None
    """The status of that process. None if nobody writes it or there is no status."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A host at a moment, by its own clock."""

    now: float
    journals: tuple[JournalSummary, ...]
    seconds: float
    """The length of the time that `busy` is a share of: since the host joined, at most a day."""
    busy: float
    """The share of that time in which the host measured."""
    stretches: tuple[GroupSpan, ...] = ()
    """The groups that it measured in that time, and the one that it measures now."""

    @property
    def doing(self) -> Status | None:
        """The status of the busiest process there. One whose pytest is gone may finish a group beside that of a run."""
        statuses = [entry.status for entry in self.journals if entry.status is not None]
        return max(statuses, key=lambda doing: (doing.state != "quiet", not doing.alone, doing.since), default=None)

    @property
    def keeps(self) -> list[str]:
        """The runs that left results there and whose process has ended."""
        return [entry.run for entry in self.journals if not entry.busy]


def snapshot(host: Path, joined: float | None = None, now: float | None = None) -> Snapshot:
    """Take a snapshot of the host with this folder. It joined at `joined`, if that is known."""
    now = time.time() if now is None else now
    begin = max(now - DAY, joined or 0.0)
    journals = tuple(_summaries(runs_of(host)))
    states = [entry.status for entry in journals if entry.status is not None]
    stretches = spans(host, begin)
    stretches += [GroupSpan(entry.since, now, entry.run, entry.group) for entry in states if entry.state == "measuring"]
    return Snapshot(now, journals, now - begin, share(stretches, begin, now), tuple(stretches))


def _summaries(folder: Path) -> Iterator[JournalSummary]:
    for path in sorted(folder.glob(f"*{ENDING}")):
        with contextlib.suppress(OSError), path.open() as file:
            busy = not _locked(file, fcntl.LOCK_SH)
            run = path.stem.partition(BEFORE_CODE)[0]
            yield JournalSummary(run, busy, _status(path) if busy else None)


def _status(journal: Path) -> Status | None:
    """The status beside a journal. None if there is none, or if another version of this program wrote it."""
    with contextlib.suppress(OSError, ValueError):
        return codec.record(Status, json.loads(status_of(journal).read_text(encoding="utf-8")))
    return None
