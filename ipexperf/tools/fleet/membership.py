"""The processes of a host that `fleet up` or `fleet join` started, recognised by a variable that they carry."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

FOLDER = "IPEXFLEET_FOLDER"
"""Set in Ray's processes of a host, and in what they start: the folder in which the host measures."""
ENVIRONMENT = "IPEXFLEET_ENVIRONMENT"
"""Set in Ray's processes: all variables that the host joined with, as JSON. Ray changes some for its own."""
TERM_SECONDS = 5.0
POLL_SECONDS = 0.2


def members(folder: Path) -> list[int]:
    """The processes that are in a fleet with this folder."""
    mark, pids = os.fsencode(f"{FOLDER}={folder}"), []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile, or belongs to another user
            if mark in (process / "environ").read_bytes().split(b"\0"):
                pids.append(int(process.name))
    return pids


def leave(folder: Path) -> bool:
    """End the processes that are in a fleet with this folder. Return whether there were any."""
    were_any = bool(members(folder))
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in members(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        until = time.monotonic() + TERM_SECONDS
        while members(folder) and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
    return were_any
