"""What workers hold of the machine's memory, and how much of it they may."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from ipexperf.bench import guard

SHARE = 0.92
"""A worker that takes more of the machine's memory than this is stopped before the kernel stops somebody else."""


def limit() -> int:
    """Bytes that one worker may hold: a share of the container's or the machine's memory."""
    least = int(re.findall(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[0]) * 1024
    with contextlib.suppress(OSError, ValueError):  # no control group, or the text "max": the machine's memory it is
        least = min(least, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return int(least * SHARE)


def together(sessions: Iterable[int], allowed: int) -> int:
    """Bytes that workers and all that they started hold together."""
    processes = guard.members(*sessions)
    most = sum(map(_resident, processes))
    # Forked processes share pages, which are counted once for each here: it is looked at closely where it matters.
    return most if most <= allowed else sum(map(_proportional, processes))


def kernel_kills() -> int:
    """How many processes the kernel has stopped for want of memory since it started."""
    found = re.search(r"^oom_kill (\d+)", Path("/proc/vmstat").read_text(), re.MULTILINE)
    return int(found.group(1)) if found else 0


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0  # it ended while we looked: its end is told by the pipe


def _proportional(pid: int) -> int:
    """Its share of the pages that it holds: the kernel walks all of them for the answer."""
    try:
        told = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return _resident(pid)  # ended, or not ours to look into: what it holds at most
    found = re.search(r"^Pss:\s+(\d+) kB", told, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0
