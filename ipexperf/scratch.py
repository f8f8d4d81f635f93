"""Temporary folders that go even where their process is killed: the next process of the same user removes them.

The kernel says whether a folder is in use: whoever made it holds a lock on the folder itself, which is dropped when the
process dies, however that comes. A number of a process would not do, because a container counts its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BOOT = Path("/proc/sys/kernel/random/boot_id")
UNLOCKED = "0" * 8
"""In place of the kernel's name in the names of folders that cannot be locked. They are left alone."""
NAME = re.compile(r"\.?ipexperf-[a-z]+-(?P<kernel>[0-9a-f]{8})-\w{8}")
"""What this module names its folders. Other programs, and other rooms, must not name theirs so."""


class Scratch:
    """A folder of its own. It goes with `close`, with this object, or at the latest after its process."""

    def __init__(self, purpose: str, where: Path | None = None) -> None:
        """Make it in the folder for temporary files, or hidden in `where`, and remove what dead processes left there.

        `purpose` is a word for people who look at the folder.
        """
        parent = (Path(tempfile.gettempdir()) if where is None else where).absolute()  # the process may go elsewhere
        sweep(parent)
        self.path, lock = _make(f"{'' if where is None else '.'}ipexperf-{purpose}", parent)
        self._finish = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def close(self) -> None:
        """Remove it. Where it was moved away, it stays."""
        self._finish()


@contextmanager
def folder(purpose: str, where: Path | None = None) -> Iterator[Path]:
    """Yield a temporary folder, as `Scratch` makes it."""
    scratch = Scratch(purpose, where)
    try:
        yield scratch.path
    finally:
        scratch.close()


def sweep(parent: Path) -> None:
    """Remove the temporary folders in here whose processes are dead, and that are this user's."""
    kernel = _kernel()
    # Where we may not read or write, there is nothing that we could tidy up.
    with contextlib.suppress(OSError), _opened(parent) as place:
        for name in os.listdir(place):  # noqa: PTH208 - a Path has no descriptor
            match = NAME.fullmatch(name)
            # Another kernel, on a disk that several hosts share, may keep its locks to itself.
            if match and match["kernel"] == kernel != UNLOCKED:
                # It is gone, in use, a link, or another user's.
                with contextlib.suppress(OSError):
                    _sweep_one(name, place)


def _sweep_one(name: str, place: int) -> None:
    with _opened(name, place) as descriptor:
        if os.fstat(descriptor).st_uid != os.geteuid():
            return
        # Held while it is removed, so that nobody else removes it too, or begins to use it.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_there(descriptor, name, place):
            shutil.rmtree(name, ignore_errors=True, dir_fd=place)


def _make(prefix: str, parent: Path) -> tuple[Path, int | None]:
    """A new folder, and the descriptor that holds its lock."""
    kernel = _kernel()
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{prefix}-{kernel}-", dir=parent))
        if kernel == UNLOCKED:
            return path, None
        try:
            return path, _lock(path)
        except (FileNotFoundError, BlockingIOError):  # swept before it was locked: make another one
            continue
        except OSError:  # a file system without locks
            kernel = UNLOCKED
            with contextlib.suppress(OSError):
                path.rmdir()


def _lock(path: Path) -> int:
    with contextlib.ExitStack() as until:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        until.callback(os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_there(descriptor, path):
            until.pop_all()
            return descriptor
    raise FileNotFoundError(path)


def _remove(path: Path, lock: int | None, maker: int) -> None:
    # A process that was forked from the maker shares its lock, but the folder is the maker's.
    if os.getpid() == maker:
        shutil.rmtree(path, ignore_errors=True)
    if lock is not None:
        os.close(lock)


@contextmanager
def _opened(path: str | Path, place: int | None = None) -> Iterator[int]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    descriptor = os.open(path, flags if place is None else flags | os.O_NOFOLLOW, dir_fd=place)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_there(descriptor: int, path: str | Path, place: int | None = None) -> bool:
    """Whether this path still leads to the folder that was opened."""
    try:
        there = os.stat(path, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))


def _kernel() -> str:
    """What names the kernel that knows the locks of this process: the same in all containers of a host."""
    try:
        match = re.fullmatch(r"([0-9a-f]{8})-[0-9a-f-]+\s*", BOOT.read_text(encoding="ascii"))
    except (OSError, ValueError):
        match = None
    return match[1] if match else UNLOCKED
