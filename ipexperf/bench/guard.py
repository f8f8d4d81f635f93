"""The guard of a worker: a process that outlives it by a moment, to end all that the worker started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import traceback

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_END = signal.SIGUSR1


def die_with_parent(number: signal.Signals) -> None:
    """Asks the kernel for this signal when the parent ends. A parent that is gone already sends none."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def members(*sessions: int) -> list[int]:
    """The processes of these sessions: a worker leads one of its own, and what it starts is in it."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - called twice a second: names are enough, and paths cost
        if name.isdigit():
            with contextlib.suppress(OSError):  # it ended while we looked
                if os.getsid(int(name)) in sessions:
                    found.append(int(name))
    return found


def end(session: int) -> None:
    """Kills a session, group by group: a group that is killed as a whole cannot fork its way out."""
    own = os.getpgrp()
    known: set[int] = set()
    while fresh := _groups(session) - known:
        known |= fresh
        for group in fresh - {own}:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # ended by now, or another user's
                os.killpg(group, signal.SIGKILL)
    if own in known:
        os.killpg(own, signal.SIGKILL)  # ourselves, so last


def _groups(session: int) -> set[int]:
    found = set()
    for pid in members(session):
        with contextlib.suppress(ProcessLookupError):
            found.add(os.getpgid(pid))
    return found


def start() -> None:
    """Forks the guard of this process, which leads a session. The kernel wakes it, however this process ends."""
    session = os.getpid()
    if os.fork():
        return
    try:
        _wait(session)
        end(session)
    except BaseException:  # noqa: BLE001 - whatever happens here, this process must not become a second worker
        traceback.print_exc()
    finally:
        os._exit(1)


def _wait(worker: int) -> None:
    # Everything but the log is let go: a pipe that is held here would hide from its other end that the worker is gone.
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - they are numbers, not paths
        if int(name) > 2:
            with contextlib.suppress(OSError):  # the folder's own, closed by now
                os.close(int(name))
    ctypes.CDLL(None).prctl(_PR_SET_NAME, b"ipexperf-guard")
    # Blocked, a signal waits for sigwait: what else is sent to the group (SIGTERM, SIGINT) is not ours to answer.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    die_with_parent(_END)
    while os.getppid() == worker:
        signal.sigwait({_END})
