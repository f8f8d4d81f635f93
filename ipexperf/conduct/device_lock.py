"""Kernel locks on the devices of this host, in a folder that all of its users share. A lock dies with its process.

They are POSIX record locks, not `flock`: a child never inherits one, and the kernel says which process has it. In
return, a process loses its lock on a file when it closes any descriptor of that file, so it opens each only once.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import pwd
import struct
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from ipexperf.errors import UsageError
from ipexperf.redaction import redacted_command
from ipexperf.variables import LEASES

FOLDER = Path("/tmp/ipexperf-leases")  # noqa: S108 - all users must find the same one; see `Folder` for its safety
SUFFIX = ".lease"
"""Of the lock files, because a folder that a user names may have others, which we must not open."""
DEVICE, QUEUE, PLACES = 0, 1, 1000
"""The bytes of a file that are locked: the device, and so many places of a queue."""
MOST = 4096
"""Bytes of a holder's note to read."""
MOMENT = "%Y-%m-%d %H:%M:%S UTC"
LONGEST = 160
"""How many characters of a holder's command are kept."""
_LOCK = struct.Struct("hhqqi4x")
"""`struct flock` of 64-bit Linux: type, whence, start, length, pid."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A holder's note about itself, for people only. The kernel alone knows whether it still holds the lock."""

    user: str
    command: str
    since: str
    pid: int
    until: str = ""
    """When it will probably be done, if that is known."""

    @classmethod
    def this_process(cls, seconds: float | None) -> Holder:
        """This process, from now on, probably for so many seconds."""
        now = datetime.now(timezone.utc)
        until = "" if seconds is None else f"{now + timedelta(seconds=seconds):{MOMENT}}"
        return cls(_user(os.getuid()), _command(sys.argv), f"{now:{MOMENT}}", os.getpid(), until)

    @classmethod
    def parse(cls, text: bytes) -> Holder | None:
        """Read a note. None if it is none: any user may write to the file."""
        try:
            document = json.loads(text)
            user, command, since = (_printable(str(document[name])) for name in ("user", "command", "since"))
            until = _printable(str(document.get("until", "")))
            return cls(user, command, since, int(document["pid"]), until)
        except (ValueError, TypeError, KeyError):
            return None

    def text(self, pid: int) -> str:
        """For people, with the number of the process as the kernel tells it: a container counts its own."""
        process = f"process {pid}" if pid else "in another container"
        late = self.until <= f"{datetime.now(timezone.utc):{MOMENT}}"  # of a moment that is over nothing is known
        until = "" if late else f", probably until {self.until[11:16]} UTC"
        return f"{self.user} has held it since {self.since}{until} ({self.command}, {process})"


def _printable(text: str) -> str:
    """The text without control characters, which would steer the reader's terminal, and not too long."""
    plain = "".join(character if character.isprintable() else "?" for character in text)
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 3]}..."


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _command(words: list[str]) -> str:
    """A command line for people, without paths of programs and secrets."""
    program, *rest = words
    path = Path(program)
    name = path.parent.name if path.name == "__main__.py" else path.name
    return _printable(" ".join([name or "python", *redacted_command(rest)]))


class Folder:
    """The folder of the lock files. Nothing in it is trusted: other users may write there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with contextlib.suppress(FileExistsError), _for_everybody():
                path.mkdir(mode=0o1777)  # as /tmp: everybody may add files, and remove only their own
        except OSError as error:
            raise self.refusal(_reason(error)) from None
        if path.is_symlink() or not path.is_dir():
            raise self.refusal("it is a link" if path.is_symlink() else "not a directory")

    @classmethod
    def of_host(cls) -> Folder:
        """The folder that this host's users share, unless the variable names another."""
        return cls(Path(os.environ.get(LEASES) or FOLDER))

    def refusal(self, reason: str) -> UsageError:
        """The error if the folder cannot be used."""
        return UsageError(
            f"no lease can be taken in {self.path}: {reason}: let {LEASES} name a folder that every user of "
            "this host may write to, or measure without a lease (--perf-lease off)"
        )

    def open(self, device: str) -> int:
        """Open a lock file to write, and make it if it is missing. Refuse what another user may have planted."""
        path = self.path / f"{device}{SUFFIX}"
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            try:
                # Without O_CREAT first: with it, Linux may refuse files of others in a folder that all may write to.
                fd = os.open(path, flags)
            except FileNotFoundError:
                with _for_everybody():
                    fd = os.open(path, flags | os.O_CREAT, 0o666)
        except OSError as error:
            raise self.refusal(f"{path.name}: {_reason(error)}") from None
        return fd

    def devices(self) -> list[str]:
        """The devices that have a lock file."""
        return sorted(path.name.removesuffix(SUFFIX) for path in self.path.glob(f"*{SUFFIX}"))


def _reason(error: OSError) -> str:
    return "it is a link" if error.errno == errno.ELOOP else (error.strerror or str(error)).lower()


@contextlib.contextmanager
def _for_everybody() -> Iterator[None]:
    """Make files with exactly the mode that is given."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


class DeviceLock:
    """The lock of one device, for this process. It is free until `acquire` succeeds."""

    def __init__(self, folder: Folder, device: str) -> None:
        self._folder = folder
        self._fd = folder.open(device)
        self.before: int | None = None
        """How many processes wait before this one. None if it does not wait."""

    def acquire(self, *, shared: bool, seconds: float | None = None) -> bool:
        """Take the lock if it is free and nobody waits for it, else a place in the queue. Never waits.

        Others are told that it is probably for so many seconds.
        """
        self._queue()
        if self.before != 0 or not self._lock(DEVICE, shared=shared):
            return False
        self._unlock(0)
        self.before = None
        with contextlib.suppress(OSError):  # a full disk: the lock holds, and others see the number of the process
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, json.dumps(asdict(Holder.this_process(seconds))).encode(), 0)
        return True

    def _queue(self) -> None:
        """Take the place behind all others, or step forward where the place before has become free."""
        if self.before is None:
            taken = -1
            while (more := _next_locked(self._fd, QUEUE + taken + 1, PLACES - taken - 1)) is not None:
                taken = more - QUEUE
            if self._lock(QUEUE + taken + 1):
                self.before = taken + 1
        while self.before and self._lock(QUEUE + self.before - 1):
            self._unlock(self.before)
            self.before -= 1

    def _unlock(self, place: int) -> None:
        fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, QUEUE + place)

    def release(self) -> None:
        """Give back the lock, or the place in the queue. Our note goes with the lock."""
        note = Holder.parse(os.pread(self._fd, MOST, 0))
        if note is not None and note.pid == os.getpid():
            os.ftruncate(self._fd, 0)
        os.close(self._fd)

    def holder(self, *, shared: bool) -> str:
        """Say who is in the way: the holder, or else who waits before us."""
        pid = _conflict(self._fd, DEVICE, shared=shared)
        if pid is None:
            first = _conflict(self._fd, QUEUE, shared=False)
            return "" if first is None else f"{_process(first)} has waited for it longer"
        return _holder_text(self._fd, pid)

    def _lock(self, byte: int, *, shared: bool = False) -> bool:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.lockf(self._fd, kind | fcntl.LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):  # POSIX allows both
            return False
        except OSError as error:  # a file system without locks
            raise self._folder.refusal((error.strerror or str(error)).lower()) from None
        return True


def holders(folder: Folder) -> dict[str, str]:
    """The devices of the host that are held, with who holds each. Not for a process that holds one itself."""
    devices = {}
    for device in folder.devices():
        fd = folder.open(device)
        try:
            pid = _conflict(fd, DEVICE, shared=False)
            if pid is not None:
                devices[device] = _holder_text(fd, pid)
        finally:
            os.close(fd)
    return devices


def _conflict(fd: int, start: int, *, shared: bool) -> int | None:
    """The process that has locked this byte so that we could not. 0 if it is in another container; None: nobody."""
    wanted = fcntl.F_RDLCK if shared else fcntl.F_WRLCK
    reply = fcntl.fcntl(fd, fcntl.F_GETLK, _LOCK.pack(wanted, os.SEEK_SET, start, 1, 0))
    kind, _, _, _, pid = _LOCK.unpack(reply)
    return None if kind == fcntl.F_UNLCK else max(pid, 0)


def _next_locked(fd: int, start: int, length: int) -> int | None:
    """The first byte of these that another process has locked, as far as the kernel sorts them. None: nobody has."""
    reply = fcntl.fcntl(fd, fcntl.F_GETLK, _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, length, 0))
    kind, _, found, _, _ = _LOCK.unpack(reply)
    return None if kind == fcntl.F_UNLCK else max(found, start)


def _holder_text(fd: int, pid: int) -> str:
    """Say who holds a lock: the note, if the process that the kernel names may have written it, else that process."""
    note = Holder.parse(os.pread(fd, MOST, 0))
    return f"{_process(pid)} holds it" if note is None or pid not in (0, note.pid) else note.text(pid)


def _process(pid: int) -> str:
    """A process in words, as far as the kernel tells."""
    if not pid:
        return "a process of another container"
    try:
        return f"process {pid} of {_user(os.stat(f'/proc/{pid}').st_uid)}"  # noqa: PTH116 - no path is made of it
    except OSError:
        return f"process {pid}"
