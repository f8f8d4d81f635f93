"""Wheels of installed packages, in a folder, named by content, so that an environment can be made again.

    <store>/<content>/<wheel>           the wheel of a package with this content
    <store>/<content>/<wheel>.sha256    its SHA-256, as `sha256sum --check` reads it; the time of this file: last use
    <store>/.part/                      what is being written
    <store>/.lock                       locked by the process that writes

One process writes at a time. It first clears `.part/`, which holds only remains of killed processes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ipexperf import scratch
from ipexperf.bench.machine.inventory import Package, normalised
from ipexperf.environments.wheels import repack
from ipexperf.errors import LockError

GB = 10**9
LIMIT = 20 * GB
"""Bytes that a store may hold."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel in the store."""

    name: str
    """The normalised name, as in `Package`."""
    version: str
    content: str
    """The content digest of the package that it was made of."""
    bytes: int
    used: float
    """The time of its last use, in seconds since the epoch."""
    path: Path


class Store:
    """A folder of wheels that holds at most `limit` bytes."""

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder = folder
        self._limit = limit

    def add(self, package: Package, say: Callable[[str], None]) -> Path:
        """Store the wheel of an installed package, and return its path. Do nothing if the store has it already.

        The content of an editable package tells where its checkout is, not what is in it. So it is built each time, and
        replaces a wheel that differs. Raise LockError if the wheel can't be made, does not fit, or can't be written.
        """
        if not package.content:
            raise LockError(f"{package.name} {package.version} cannot be kept: its installer recorded no files of it")
        try:
            path = self.find(package)
            if path is not None and package.origin != "editable":
                if _is_intact(path):
                    return path
                say(f"{path} is damaged: it is replaced")
            with self._writing(say) as part:
                say(f"keeping {package.name} {package.version}")
                return self._move_in(package, repack(package, part), say)
        except OSError as error:
            raise LockError(f"{package.name} {package.version} cannot be kept in {self.folder}: {error}") from error

    def find(self, package: Package, *, check: bool = False) -> Path | None:
        """Return the wheel of a package with this name, version and content, or None. Counts as a use of it.

        With `check`, raise LockError if the wheel is damaged.
        """
        wheel = self._wheel(package)
        if wheel is None:
            return None
        if check and not _is_intact(wheel.path):
            raise LockError(f"{wheel.path} is damaged: keep {package.name} again where it is still installed")
        with suppress(OSError):  # a shared store may be read-only: the use is not recorded then
            os.utime(digest_file(wheel.path))
        return wheel.path

    def wheels(self) -> list[Wheel]:
        """Return all wheels, the latest used first."""
        wheels = []
        for path in sorted(self.folder.glob("[!.]*/*.whl")):
            name, version = path.name.split("-")[:2]
            with suppress(FileNotFoundError):  # another process removed it meanwhile
                size, used = path.stat().st_size, digest_file(path).stat().st_mtime
                wheels.append(Wheel(normalised(name), version.replace("_", "-"), path.parent.name, size, used, path))
        return sorted(wheels, key=lambda wheel: -wheel.used)

    def size(self) -> int:
        """Return the bytes of all wheels."""
        return sum(wheel.bytes for wheel in self.wheels())

    def prune(self, limit: int, used: Collection[str]) -> list[str]:
        """Remove the longest unused wheels until the store holds at most `limit` bytes. Keep the contents in `used`.

        Return a line for each wheel that was removed, and one more if the limit can't be reached.
        """
        if not self.folder.is_dir():
            return []
        lines = []
        try:
            with self._writing(lambda _: None):
                size = self.size()
                for wheel in reversed(self.wheels()):
                    if size > limit and wheel.content not in used:
                        _remove(wheel.path)
                        size -= wheel.bytes
                        lines.append(f"removed the wheel {wheel.path.name}: {_gb(wheel.bytes)}")
        except OSError as error:
            raise LockError(f"{self.folder} cannot be pruned: {error}") from error
        if size > limit:
            lines.append(f"{_gb(size)} of wheels are left, more than {_gb(limit)}, because accepted locks need them")
        return lines

    def _wheel(self, package: Package) -> Wheel | None:
        # Packages that consist only of requirements have equal contents, so name and version must match too.
        identity = (package.content, package.name, package.version)
        return next((wheel for wheel in self.wheels() if (wheel.content, wheel.name, wheel.version) == identity), None)

    @contextmanager
    def _writing(self, say: Callable[[str], None]) -> Iterator[Path]:
        """Yield an empty folder for new files. Only one process at a time is in the block."""
        scratch.made(self.folder)
        part = self.folder / ".part"
        with one_at_a_time(self.folder / ".lock", say, f"waiting for another process that writes to {self.folder}"):
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            try:
                yield part
            finally:
                shutil.rmtree(part, ignore_errors=True)

    def _move_in(self, package: Package, new: Path, say: Callable[[str], None]) -> Path:
        """Move a new wheel into its place. Raise LockError if the store has no room for it."""
        digest = _sha256(new)
        old = self._wheel(package)
        if old is not None and package.origin == "editable":
            if _recorded(old.path) == digest and _is_intact(old.path):
                return old.path
            say(f"{package.name} {package.version}: its source has changed since it was kept, so its wheel is replaced")
        size, used = new.stat().st_size, self.size() - (old.bytes if old else 0)
        if used + size > self._limit:
            raise LockError(
                f"{package.name} {package.version} takes {_gb(size)}, and {self.folder} holds {_gb(used)} of at most "
                f"{_gb(self._limit)}: make room with `ipexperf env prune`"
            )
        if old is not None:
            _remove(old.path)
        destination = self.folder / package.content / new.name
        destination.parent.mkdir(exist_ok=True)
        # The digest first: once the wheel's own file is in place, both are complete.
        digest_of_new = digest_file(new)
        digest_of_new.write_text(f"{digest}  {new.name}\n", encoding="utf-8")
        digest_of_new.replace(digest_file(destination))
        new.replace(destination)
        return destination


@contextmanager
def one_at_a_time(lock: Path, say: Callable[[str], None], waiting: str) -> Iterator[None]:
    """Hold a lock, which ends with its process. If another process holds it, say that we are waiting, and wait."""
    import filelock

    guard = filelock.FileLock(lock)
    try:
        guard.acquire(timeout=0)
    except filelock.Timeout:
        say(waiting)
        guard.acquire()
    try:
        yield
    finally:
        guard.release()


def _gb(size: int) -> str:
    return f"{size / GB:.2f} GB"


def digest_file(wheel: Path) -> Path:
    """The file with the SHA-256 of a wheel."""
    return wheel.with_name(f"{wheel.name}.sha256")


def _recorded(wheel: Path) -> str:
    return digest_file(wheel).read_text(encoding="utf-8").partition(" ")[0]


def _is_intact(wheel: Path) -> bool:
    try:
        return _recorded(wheel) == _sha256(wheel)
    except (OSError, UnicodeDecodeError):  # of a bad disk, for example
        return False


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _remove(wheel: Path) -> None:
    """Remove a wheel, and then its digest, so that a wheel never lacks one."""
    wheel.unlink()
    digest_file(wheel).unlink()
    with suppress(OSError):  # it has other wheels
        wheel.parent.rmdir()
