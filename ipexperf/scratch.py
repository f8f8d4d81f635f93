"""Temporary folders that are removed even if their process is killed: by a later process of the same user.

A process holds a lock on each of its folders, and the kernel drops the lock when the process dies in any way. A process
number would not tell that, because each container counts its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ipexperf.errors import UsageError

BOOT = Path("/proc/sys/kernel/random/boot_id")
NAME = re.compile(r"\.?ipexperf-\w+-(?P<kernel>[0-9a-f]{8})-\w{8}")
"""The pattern of the names of these folders. No other program or room may use such names."""
FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
CACHE = ".ipexperf"
"""The name of the cache folder, unless the user names another."""
GIT = ("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
"""Run git without what a repository may have it run."""


def cache(named: Path | None = None, folder: Path = Path()) -> Path:
    """Return the folder that the user named as the cache, or that in `folder`. Raise UsageError if git tracks it."""
    path = named or folder / CACHE
    place, tracked = path.parent.resolve() / path.name, b""
    if path.is_file():
        raise UsageError(f"the cache {path} is a file: name a folder")
    if os.path.lexists(place) and any((above / ".git").exists() for above in place.parents):
        # Git would answer nothing in the repository of another user, such as that of a container's host.
        words = (*GIT, "-c", "safe.directory=*", "--literal-pathspecs", "ls-files", "-z", "--", place.name)
        with contextlib.suppress(OSError):  # without git
            tracked = subprocess.run(words, cwd=place.parent, capture_output=True, check=False).stdout
    if tracked:
        why = f"git tracks {os.fsdecode(tracked).split(chr(0))[0]}, and what is in a cache is used without a review"
        raise UsageError(f"{why}: take it out of git by `git rm -r {path}`, or name another cache")
    return path


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
        self.path, lock = _make(f"{hidden}ipexperf-{purpose}-{_kernel()}-", parent)
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
    with contextlib.suppress(OSError):  # if we may not read there, we can remove nothing
        for path in parent.iterdir():
            match = NAME.fullmatch(path.name)
            # On a disk that several hosts share, we may not see the locks of another kernel.
            if match and match["kernel"] == kernel:
                with contextlib.suppress(OSError):  # it is gone, or in use
                    _sweep_one(path)


def _sweep_one(path: Path) -> None:
    if path.lstat().st_uid != os.geteuid():
        return
    descriptor = os.open(path, FLAGS)
    try:
        # Hold the lock meanwhile, so that no other process removes it too, or begins to use it.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)


def _make(prefix: str, parent: Path) -> tuple[Path, int]:
    """Make a folder. Return it with the descriptor that holds its lock."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        # It may be swept before it is locked: then make another one.
        with contextlib.suppress(FileNotFoundError, BlockingIOError), contextlib.ExitStack() as stack:
            descriptor = os.open(path, FLAGS)
            stack.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise
            except OSError:
                """A file system without locks, where nothing is swept either."""
            if path.exists():
                stack.pop_all()
                return path, descriptor


def _remove(path: Path, lock: int, maker: int) -> None:
    # A process that the maker forked shares its lock, but only the maker removes the folder.
    if os.getpid() == maker:
        shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


def _kernel() -> str:
    """Return the name of the running kernel, which is the same in all containers of a host."""
    return BOOT.read_text(encoding="ascii")[:8]
