"""What a run measured on a host, in a file there, until the controller has all of it."""

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

from ipexperf.errors import UsageError
from ipexperf.fleet import messages, status
from ipexperf.fleet.messages import Progress
from ipexperf.fleet.status import Status

ENDING = ".jsonl"
BEFORE_CODE = "+"
"""Separates the run from the code in a journal's name."""
LINE_SECONDS = 30.0
LOOK_SECONDS = 0.2


def folder_of(host: Path) -> Path:
    """Where the host keeps its journals."""
    return host / ".ipexperf" / "fleet" / "runs"


class Journal:
    """The journal of one run of some code. Who has it open holds a lock, and who opens it after that waits."""

    def __init__(self, folder: Path, run: str, code: str, say: Callable[[str], None] = lambda _: None) -> None:
        """`code` is the digest of the code: what other code measured is not taken over."""
        if not run or Path(run).name != run or BEFORE_CODE in run:
            raise UsageError(f"--perf-resume {run!r} is no run of a fleet")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.path = folder / f"{run}{BEFORE_CODE}{code}{ENDING}"
            self._file: IO[str] = self.path.open("a+", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{folder}: nothing can be kept there: {error.strerror}") from None
        self.broken = False
        """Whether it was said that it cannot be written."""
        self._lock(f"waiting for the group that is still being measured here for run {run}", say)

    def _lock(self, line: str, say: Callable[[str], None]) -> None:
        said = -math.inf
        while not _locked(self._file, fcntl.LOCK_EX):
            if time.monotonic() - said > LINE_SECONDS:
                said = time.monotonic()
                say(line)
            time.sleep(LOOK_SECONDS)

    def add(self, text: str) -> str:
        """Append a line, which is on the disk when this returns. Return why it is not, or an empty text."""
        try:
            self._file.write(text + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def complete(self) -> list[Progress]:
        """The groups that were completed, in the order of their requests, each with all of its rounds.

        A group that was measured again is there again. Not those that were stopped.
        """
        self._file.seek(0)
        whole: dict[int, Progress] = {}
        for progress in _lines(self._file):
            before = whole.get(progress.number)
            earlier = before.rounds if before is not None else ()
            whole[progress.number] = replace(progress, rounds=(*earlier, *progress.rounds))
        return [one for one in whole.values() if one.over and not any(measured.cut for _, measured in one.measurements)]

    def close(self) -> None:
        """Give the lock back. The file stays."""
        with contextlib.suppress(OSError):  # `add` has said of what cannot be written that it is not
            self._file.close()

    def remove(self) -> None:
        """Forget everything: it has arrived."""
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


def _lines(file: IO[str]) -> Iterator[Progress]:
    """The lines that can be read: the last one of a host that lost its power may be cut."""
    for text in file:
        with contextlib.suppress(ValueError):
            reply = messages.reply(text)
            if isinstance(reply, Progress):
                yield reply


@dataclass(frozen=True, slots=True)
class Kept:
    """A journal on a host, for people."""

    run: str
    busy: bool
    """Whether somebody still writes it."""
    status: Status | None = None
    """What that process does. None: nobody writes it, or it does not say."""


def kept(folder: Path) -> list[Kept]:
    """The journals of a host."""
    journals = []
    for path in sorted(folder.glob(f"*{ENDING}")):
        with contextlib.suppress(OSError), path.open() as file:
            busy = not _locked(file, fcntl.LOCK_SH)
            run = path.stem.partition(BEFORE_CODE)[0]
            journals.append(Kept(run, busy, status.read(path) if busy else None))
    return journals
