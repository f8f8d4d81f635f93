"""Runs that wait for their history: files of this host, written while it cannot be used and delivered later."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ipexperf import scratch
from ipexperf.errors import HistoryError, UnavailableError
from ipexperf.history import addresses, merging, sqlite_files
from ipexperf.history.store import History
from ipexperf.history.values import content_uid
from ipexperf.redaction import redacted

FOLDER = "spool"
ADDRESS = "address"
"""The file that says which server a folder is for, without its password. It is there once the server was reached."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """The number of delivered files, and a sentence for each that was not."""

    files: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spool:
    """The files of this host that wait for one history."""

    target: str
    folder: Path
    spare: Path
    """The folder to use if the first one cannot be written. Its disk may be that of the history, and full."""

    @classmethod
    def of(cls, target: str, cache: Path) -> Spool | None:
        """The spool for this address in a cache folder. None for a history in memory."""
        file = addresses.file_of(target)
        if file is None and addresses.url_of(target).get_backend_name() == "sqlite":
            return None
        address = file.absolute() if file else addresses.url_of(target).set(password=None, query={})
        name = content_uid(str(address))[:12]
        spare = Path(tempfile.gettempdir()) / f"ipexperf-{FOLDER}-{os.getuid()}"
        return cls(target, cache / FOLDER / name, spare / name)

    @property
    def reached_before(self) -> bool:
        """Whether this server was reached from here before. If not, its address is taken to be wrong."""
        return (self.folder / ADDRESS).exists()

    def reached(self) -> None:
        """Remember that the server was reached. Without its file, a run does not even begin."""
        if addresses.file_of(self.target):
            return
        with _in_a_sentence(self.folder):
            scratch.made(self.folder)
            (self.folder / ADDRESS).write_text(f"{redacted(self.target)}\n")

    def waiting(self) -> list[Path]:
        """The files that wait, the oldest run first."""
        spare = self.spare.glob("*.db") if _ours(self.spare.parent) else ()
        return sorted((*self.folder.glob("*.db"), *spare), key=lambda path: path.name)

    @contextlib.contextmanager
    def claimed(self, path: Path) -> Iterator[bool]:
        """Hold the lock of a file, which dies with this process. False if another process has it."""
        with _in_a_sentence(path.parent):
            if path.parent == self.spare:
                self.spare.parent.mkdir(mode=0o700, exist_ok=True)
                if not _ours(self.spare.parent):
                    raise HistoryError(f"nothing can be kept in {self.spare}: somebody else made this folder.")
            scratch.made(path.parent)
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

    def deliver(self, history: History) -> Delivered:
        """Copy the files that wait to the history, and remove each when it is there.

        A file that is still being written is left alone, and so is a damaged one. If a delivery is cut off, the next
        one copies what is missing. Raise UnavailableError if the history cannot be used now.
        """
        delivered, problems = 0, []
        for path in self.waiting():
            with self.claimed(path) as mine:
                if not mine or not path.exists():
                    continue
                try:
                    waiting = History.open(path, create=False)
                except HistoryError as error:  # also if it is unavailable: that is this file, and not the history
                    problems.append(str(error))
                    continue
                try:
                    with waiting:
                        merging.copy(waiting, history, newer=True)
                except UnavailableError:
                    raise
                except HistoryError as error:
                    problems.append(str(error))
                    continue
                sqlite_files.delete(path)
                path.with_suffix(".lock").unlink(missing_ok=True)
                delivered += 1
        return Delivered(delivered, tuple(problems))


def _ours(folder: Path) -> bool:
    """Whether a folder is this user's own. In a folder that all users share, anybody can make one of any name."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


@contextlib.contextmanager
def _in_a_sentence(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HistoryError(f"nothing can be kept in {folder}: {error.strerror}.") from error
