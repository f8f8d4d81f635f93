"""The guard of a worker: a process that outlives it briefly, to end everything that the worker started."""

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
    """Ask the kernel to send this signal when the parent ends. None is sent if it has ended already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def members(*sessions: int) -> list[int]:
    """Return the processes of these sessions. A worker leads a session that contains everything it starts."""
    pids = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - called twice a second: names are enough, and paths cost
        if name.isdigit():
            with contextlib.suppress(OSError):  # it ended while we looked
                if os.getsid(int(name)) in sessions:
                    pids.append(int(name))
    return pids


def end(session: int) -> None:
    """Kill a session, group by group: a group that is killed as a whole cannot escape by forking."""
    own_group = os.getpgrp()
    ended: set[int] = set()
    while fresh := _groups(session) - ended:
        ended |= fresh
        for group in fresh - {own_group}:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # ended already, or of another user
                os.killpg(group, signal.SIGKILL)
    if own_group in ended:
        os.killpg(own_group, signal.SIGKILL)  # ourselves, so last


def _groups(session: int) -> set[int]:
    groups = set()
    for pid in members(session):
        with contextlib.suppress(ProcessLookupError):
            groups.add(os.getpgid(pid))
    return groups


def start() -> None:
    """Fork the guard of this process, which leads a session. The kernel wakes it however this process ends."""
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


def lead() -> None:
    """Let this process, just forked, lead a session that ends with it, and it with its parent."""
    os.setsid()
    die_with_parent(signal.SIGKILL)
    start()


def _wait(worker: int) -> None:
    # Close everything but the log: an open pipe here would hide the end of the worker from the other side.
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - they are numbers, not paths
        if int(name) > 2:
            with contextlib.suppress(OSError):  # the folder's own, closed by now
                os.close(int(name))
    ctypes.CDLL(None).prctl(_PR_SET_NAME, b"ipexperf-guard")
    # Blocked signals wait for sigwait. Signals to the whole group (SIGTERM, SIGINT) are not for the guard.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    die_with_parent(_END)
    while os.getppid() == worker:
        signal.sigwait({_END})
