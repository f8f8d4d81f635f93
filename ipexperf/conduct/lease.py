"""The lease of a run on its devices: only one process of the host measures on a device at a time.

Each device has a file that its holder locks, with a note of who that is. The kernel gives a lock back when its process
dies, and no child inherits it: a record lock of POSIX. In return a process loses it with any descriptor of the file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from time import monotonic, sleep

from ipexperf.bench import registry
from ipexperf.case import Case
from ipexperf.errors import UsageError
from ipexperf.redaction import redacted_command
from ipexperf.steps import Notice
from ipexperf.variables import LEASED, LEASES

CPU = "cpu"
WAIT, OFF = "wait", "off"
SHARED = "shared:"
"""A claim is a device, `cpu` or a kind of card and its number; with this before it, others may share it."""
FOLDER = "/tmp/ipexperf-leases"  # noqa: S108 - all users must find the same one; `_open` follows no link in it
POLL_SECONDS = 0.5
LONGEST = 300
"""How many bytes of a note are written and read."""


def claims(device: str, index: int, environment: Mapping[str, str], processes: int = 1) -> set[str]:
    """What a measurement on one kind of device claims.

    Work on a card is directed by the CPU, so it shares the CPU with work on other cards, but not with work on the CPU.
    """
    kind = registry.devices.get(device)
    if not kind.accelerator:
        return {CPU}
    claimed = {SHARED + CPU}
    for number in range(index, index + processes):
        with contextlib.suppress(UsageError):  # there is no such card, which the launch reports
            # A card has the same name whether it is chosen by its index or by the vendor's variable, which comes first.
            chosen = next(iter(kind.variables(number, environment).values()), str(number))
            claimed.add(re.sub(r"[^\w,:-]", "_", f"{device}-{kind.card_number(chosen, environment)}"))
    return claimed


def of_case(case: Case, index: int, environment: Mapping[str, str]) -> set[str]:
    """What a case claims."""
    return claims(case.device, index, environment, registry.execution(case).processes(case))


class Lease:
    """The devices that one run holds, from its first case to its end. What it starts may measure on them too."""

    def __init__(self, mode: str, say: Callable[[str], None]) -> None:
        self.seconds_waited = 0.0
        """The seconds that were spent waiting for others."""
        self._mode = mode
        self._say = say
        self._claims: set[str] = set()
        self._files: dict[str, int] = {}

    def take(self, requests: Iterable[str]) -> None:
        """Hold these devices too. Waits until they are free, or raises UsageError, as the mode says.

        Nothing may be measured meanwhile: to hold more, the lease gives everything back and takes all in one order.
        Whoever holds one device and waits for another could otherwise wait for ever.
        """
        union = {*self._claims, *requests}
        union -= {SHARED + claim for claim in union}
        if self._mode == OFF or union == self._claims:
            return
        self.close()
        began = monotonic()
        try:
            # Cards first, so that nobody keeps the CPU while waiting for a card.
            for claim in sorted(union, key=lambda claim: (claim.endswith(CPU), claim)):
                if not _covered(claim):
                    self._lock(claim)
                    _write_note(self._files[claim])
        except BaseException:
            self.close()
            raise
        finally:
            self.seconds_waited += monotonic() - began
        self._claims = union

    def close(self) -> None:
        """Give everything back, with our notes."""
        self._claims = set()
        while self._files:
            claim, file = self._files.popitem()
            os.environ[LEASED] = ";".join(held for held in _held() if held != claim)
            os.ftruncate(file, 0)
            os.close(file)

    def _lock(self, claim: str) -> None:
        """Lock the file of a device."""
        if SHARED + claim in _held():  # our own process would lose its share with the file
            raise UsageError("the CPU cannot be measured alone: an outer lease shares it with others")
        file = _open(claim.removeprefix(SHARED))
        try:
            self._wait(claim, file)
        except BaseException:
            os.close(file)
            raise
        self._files[claim] = file
        os.environ[LEASED] = ";".join([*_held(), claim])

    def _wait(self, claim: str, file: int) -> None:
        """Lock an open file as soon as it is free. Say for whom we wait, or raise UsageError if we must not."""
        device = claim.removeprefix(SHARED)
        name, announced = "the CPU" if device == CPU else device, ""
        advice = "wait for it (--perf-lease wait), or measure without a lease (--perf-lease off)"
        nested = self._files.keys() != set(_held())
        if nested:  # two that each hold what the other one waits for would wait for ever
            advice = "a command inside a lease does not wait for more devices: let the outer lease take them all"
        while not _locked(file, claim):
            holder = _holder(file)
            if nested or self._mode != WAIT:
                raise UsageError(f"{name} is not free: {holder}: {advice}")
            if holder != announced:
                self._say(Notice(f"waiting for {name}: {holder}"))
                announced = holder
            sleep(POLL_SECONDS)
        if announced:
            self._say(f"{name} is free")


@contextlib.contextmanager
def for_work(mode: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the CPU inside the block: an installation disturbs what others measure, and is disturbed by nothing.

    Who holds a card keeps its share in the CPU: those who hold something must not wait for more.
    """
    lease = Lease(mode, say)
    try:
        if not _covered(SHARED + CPU):
            lease.take([CPU])
        yield
    finally:
        lease.close()


def _held() -> list[str]:
    """What this process and those that started it hold. The environment names it to the processes that we start."""
    return [claim for claim in os.environ.get(LEASED, "").split(";") if claim]


def _covered(claim: str) -> bool:
    """Whether this process holds the device already, or one that started it."""
    return not {claim, claim.removeprefix(SHARED)}.isdisjoint(_held())


def _open(device: str) -> int:
    """Open the file of a device, for all users of the host. Refuse links, which another user may have planted."""
    folder, flags = Path(os.environ.get(LEASES) or FOLDER), os.O_RDWR | os.O_NOFOLLOW
    path, umask = folder / f"{device}.lease", os.umask(0)
    try:
        folder.mkdir(mode=0o1777, exist_ok=True)  # as /tmp: everybody may add files, and remove only their own
        with contextlib.suppress(FileNotFoundError):
            # Without O_CREAT first: with it, Linux may refuse files of others in a folder that all may write to.
            return os.open(path, flags)
        return os.open(path, flags | os.O_CREAT, 0o666)
    except OSError as error:
        where = f"{error.filename}: {(error.strerror or str(error)).lower()}"
        advice = f"let {LEASES} name a folder that every user of this host may write to"
        raise UsageError(
            f"no lease can be taken in {where}: {advice}, or measure without a lease (--perf-lease off)"
        ) from None
    finally:
        os.umask(umask)


def _locked(file: int, claim: str) -> bool:
    """Lock an open file if nobody is in the way."""
    kind = fcntl.LOCK_SH if claim.startswith(SHARED) else fcntl.LOCK_EX
    try:
        fcntl.lockf(file, kind | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # POSIX allows both
        return False
    return True


def _write_note(file: int) -> None:
    """Say who we are, for people: the kernel alone knows who holds a lock."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = f"user {os.getuid()}"
    path = Path(sys.argv[0])
    program = path.parent.name if path.name == "__main__.py" else path.name
    command = " ".join([program, *redacted_command(sys.argv[1:])])
    since = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    text = f"{user} has held it since {since} (process {os.getpid()}: {command})"
    with contextlib.suppress(OSError):  # a full disk: the lock holds without its note
        os.ftruncate(file, 0)
        os.pwrite(file, text.encode()[:LONGEST], 0)


def _holder(file: int) -> str:
    """The note of whoever has locked a file, without what would steer the reader's terminal: anybody may write it."""
    text = os.pread(file, LONGEST, 0).decode(errors="replace")
    return "".join(letter if letter.isprintable() else "?" for letter in text) or "another process holds it"
