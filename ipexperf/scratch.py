"""Temporary folders that are removed even if their process is killed: by the next process of the same user.

A process holds a lock on each of its folders, and the kernel drops the lock when the process dies in any way. A process
number would not tell that, because each container counts its own.
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
"""Takes the place of the kernel's name in the names of folders that cannot be locked. `sweep` leaves them alone."""
NAME = re.compile(r"\.?ipexperf-[a-z]+-(?P<kernel>[0-9a-f]{8})-\w{8}")
"""The pattern of the names of these folders. No other program or room may use such names."""


CACHE = ".ipexperf"
"""The name of the cache folder, unless the user names another."""


def made(folder: Path) -> Path:
    """Make a folder of a cache. Git ignores what is in a cache of the usual name."""
    folder.mkdir(parents=True, exist_ok=True)
    cache = next((above for above in (folder, *folder.parents) if above.name == CACHE), None)
    if cache is not None and not (cache / ".gitignore").exists():
        (cache / ".gitignore").write_text("*\n", encoding="utf-8")
    return folder


class Scratch:
    """A temporary folder. `close` removes it, or the end of this object, or a later process after a crash."""

    def __init__(self, purpose: str, parent: Path | None = None) -> None:
        """Make the folder among the system's temporary files, or hidden in `parent`, and sweep there first.

        `purpose` is a word in its name, for people.
        """
        hidden = "" if parent is None else "."
        parent = (parent or Path(tempfile.gettempdir())).absolute()  # the process may change its folder
        sweep(parent)
        self.path, lock = _make(f"{hidden}ipexperf-{purpose}", parent)
        self._finish = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def close(self) -> None:
        """Remove the folder, unless it was moved away."""
        self._finish()


@contextmanager
def folder(purpose: str, parent: Path | None = None) -> Iterator[Path]:
    """Yield a temporary folder, as `Scratch` makes it."""
    scratch = Scratch(purpose, parent)
    try:
        yield scratch.path
    finally:
        scratch.close()


def sweep(parent: Path) -> None:
    """Remove this user's temporary folders in `parent` whose processes are dead."""
    kernel = _kernel()
    # If we may not read or write there, we can remove nothing.
    with contextlib.suppress(OSError), _opened(parent) as place:
        for name in os.listdir(place):  # noqa: PTH208 - a Path has no descriptor
            match = NAME.fullmatch(name)
            # On a disk that several hosts share, we may not see the locks of another kernel.
            if match and match["kernel"] == kernel != UNLOCKED:
                # The folder is gone, in use, a link, or another user's.
                with contextlib.suppress(OSError):
                    _sweep_one(name, place)


def _sweep_one(name: str, place: int) -> None:
    with _opened(name, place) as descriptor:
        if os.fstat(descriptor).st_uid != os.geteuid():
            return
        # Hold the lock meanwhile, so that no other process removes it too, or begins to use it.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_there(descriptor, name, place):
            shutil.rmtree(name, ignore_errors=True, dir_fd=place)


def _make(prefix: str, parent: Path) -> tuple[Path, int | None]:
    """Make a folder. Return it with the descriptor that holds its lock, or None if it cannot be locked."""
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
    with contextlib.ExitStack() as stack:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        stack.callback(os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_there(descriptor, path):
            stack.pop_all()
            return descriptor
    raise FileNotFoundError(path)


def _remove(path: Path, lock: int | None, maker: int) -> None:
    # A process that the maker forked shares its lock, but only the maker removes the folder.
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
    """Return True if this path still leads to the folder that was opened."""
    try:
        status = os.stat(path, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(status, os.fstat(descriptor))


def _kernel() -> str:
    """Return the name of the running kernel, which is the same in all containers of a host."""
    try:
        match = re.fullmatch(r"([0-9a-f]{8})-[0-9a-f-]+\s*", BOOT.read_text(encoding="ascii"))
    except (OSError, ValueError):
        match = None
    return match[1] if match else UNLOCKED
