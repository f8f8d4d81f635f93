"""Runs that wait for their server: files of this host, written while the server is away and delivered later."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ipexperf.errors import HistoryError, UnreachableError
from ipexperf.history import addresses, copying, sqlite_files
from ipexperf.history.store import History
from ipexperf.history.values import content_uid

FOLDER = "spool"
ADDRESS = "address"
"""The file that says which server a folder is for, without its password. It is there once the server was reached."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """How many files were delivered, and why others were not: a sentence each."""

    files: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spool:
    """The files of this host that wait for one server."""

    target: str
    folder: Path

    @classmethod
    def of(cls, target: str, cache: Path) -> Spool | None:
        """The spool for this address in a cache folder. None if the history is a file: nothing is in between then."""
        if addresses.url_of(target).get_backend_name() == "sqlite":
            return None
        return cls(target, cache / FOLDER / content_uid(addresses.hidden(target))[:12])

    @property
    def known(self) -> bool:
        """Whether this server was reached from here before: a wrong address is an error, and no server that is away."""
        return (self.folder / ADDRESS).exists()

    def reached(self) -> None:
        """Remember that the server was reached."""
        with _in_a_sentence(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / ADDRESS).write_text(f"{addresses.hidden(self.target)}\n")

    def waiting(self) -> list[Path]:
        """The files that wait, the oldest run first."""
        return sorted(self.folder.glob("*.db"))

    @contextlib.contextmanager
    def claimed(self, path: Path) -> Iterator[bool]:
        """Hold the lock of a file, which dies with this process. False if another process has it."""
        with _in_a_sentence(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(descriptor)

    def deliver(self, server: History) -> Delivered:
        """Copy the files that wait to the server, and remove each when it is there.

        A file that is still being written is left alone, and so is a damaged one. If a delivery is cut off, the next
        one copies what is missing. Raise UnreachableError if the server goes away.
        """
        delivered, problems = 0, []
        for path in self.waiting():
            with self.claimed(path) as mine:
                if not mine or not path.exists():
                    continue
                try:
                    with History.open(path, create=False) as kept:
                        copying.copy(kept, server, newer=True)
                except UnreachableError:
                    raise
                except HistoryError as error:
                    problems.append(str(error))
                    continue
                sqlite_files.delete(path)
                path.with_suffix(".lock").unlink(missing_ok=True)
                delivered += 1
        return Delivered(delivered, tuple(problems))


@contextlib.contextmanager
def _in_a_sentence(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HistoryError(f"nothing can be kept for the server in {folder}: {error.strerror}.") from error
