"""The processes of a host that `fleet up` or `fleet join` started, recognised by a variable that they carry."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from ipexperf.bench.machine import kernel_files

FOLDER = "IPEXFLEET_FOLDER"
"""Set in Ray's processes of a host, and in what they start: the folder in which the host measures."""
ADDRESS = "IPEXFLEET_ADDRESS"
"""Set in the same processes: the address of their fleet, as `fleet up` printed it or `fleet join` was given it."""
ENVIRONMENT = "IPEXFLEET_ENVIRONMENT"
"""Set in Ray's processes: all variables that the host joined with, as JSON. Ray changes some for its own."""
TERM_SECONDS = 5.0
POLL_SECONDS = 0.2


def variables(pid: int) -> dict[str, str]:
    """The variables with which a process was started. Raise OSError if it has ended or belongs to another user."""
    text = os.fsdecode(Path(f"/proc/{pid}/environ").read_bytes())
    words = (word.partition("=") for word in text.split("\0") if "=" in word)
    return {name: value for name, _, value in words}


def members(address: str = "") -> dict[int, str]:
    """The processes of this user that are in a fleet, each with the address of its fleet.

    This process and its ancestors are left out. With `address`, only those of that fleet.
    """
    ours = _ancestors()
    addresses = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile, or belongs to another user
            environment = variables(int(folder.name))
            address_there = environment.get(ADDRESS, "")
            if FOLDER in environment and int(folder.name) not in ours and address in ("", address_there):
                addresses[int(folder.name)] = address_there
    return addresses


def _ancestors() -> set[int]:
    pid, pids = os.getpid(), set()
    while pid > 1:
        pids.add(pid)
        try:
            pid = int(kernel_files.stat_fields(pid)[1])
        except OSError:
            break
    return pids


def leave(address: str = "") -> int:
    """End the processes of the fleet at an address, or of every fleet. Return how many there were."""
    pids = members(address)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in members(address):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        until = time.monotonic() + TERM_SECONDS
        while members(address) and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
    return len(pids)
