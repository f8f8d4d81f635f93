"""The journal of a run on a host: a file with its results there, until the controller has all of them."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from ipexperf import scratch
from ipexperf.errors import UsageError
from ipexperf.tools.fleet import messages, status
from ipexperf.tools.fleet.messages import GroupProgress
from ipexperf.tools.fleet.status import Status

ENDING = ".jsonl"
BEFORE_CODE = "+"
"""Separates the run from the code in a journal's name."""
LINE_SECONDS = 30.0
POLL_SECONDS = 0.2


def folder_of(host: Path) -> Path:
    """Where the host keeps its journals."""
    return host / ".ipexperf" / "fleet" / "runs"


class Journal:
    """The journal of one run of some code. An open journal is locked, and a second process that opens it waits."""

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
        if only and not _locked(self._file, fcntl.LOCK_EX):
            self.close()
            raise UsageError(
                f"{folder.parents[2]} is the folder of another host too: "
                "give each its own, by ipexperf fleet join --folder"
            )
        self._lock(f"waiting for the group that is still being measured here for run {run}", say)

    def _lock(self, line: str, say: Callable[[str], None]) -> None:
        announced_at = -math.inf
        while not _locked(self._file, fcntl.LOCK_EX):
            if time.monotonic() - announced_at > LINE_SECONDS:
                announced_at = time.monotonic()
                say(line)
            time.sleep(POLL_SECONDS)

    def add(self, text: str) -> str:
        """Append a line and sync it to the disk. Return why that failed, or an empty text."""
        try:
            self._file.write(text + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            return error.strerror or str(error)
        return ""

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

    def close(self) -> None:
        """Give the lock back. The file stays."""
        with contextlib.suppress(OSError):  # `add` has reported what cannot be written
            self._file.close()

    def remove(self) -> None:
        """Delete the file, because the controller has everything."""
        self.path.unlink(missing_ok=True)
        status.path_of(self.path).unlink(missing_ok=True)
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
            reply = messages.reply(text)
            if isinstance(reply, GroupProgress):
                yield reply


@dataclass(frozen=True, slots=True)
class JournalSummary:
    """A journal on a host, for people."""

    run: str
    busy: bool
    """Whether a process still writes it."""
    status: Status | None = None
    """The status of that process. None if nobody writes it or there is no status."""


def summaries(folder: Path) -> list[JournalSummary]:
    """The journals of a host."""
    journals = []
    for path in sorted(folder.glob(f"*{ENDING}")):
        with contextlib.suppress(OSError), path.open() as file:
            busy = not _locked(file, fcntl.LOCK_SH)
            run = path.stem.partition(BEFORE_CODE)[0]
            journals.append(JournalSummary(run, busy, status.read(path) if busy else None))
    return journals
