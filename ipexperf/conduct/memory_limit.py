"""The memory that workers use, and their limit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ipexperf.bench.machine import control_groups, heap, kernel_files
from ipexperf.bench.process import guard

SHARE = 0.92
"""Largest share of the machine's memory for workers. Beyond it we kill one before the kernel kills something else."""


def limit() -> int:
    """The memory limit for workers in bytes: a share of the container's or the machine's memory."""
    least = int(re.findall(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[0]) * 1024
    allowed = control_groups.memory_limit(kernel_files.text) or "max"
    return int(min(least, int(allowed) if allowed.isdecimal() else least) * SHARE)


def used_bytes(sessions: Iterable[int], allowed: int) -> int:
    """Bytes used by these workers and everything they started. Exact only above `allowed`."""
    processes = guard.members(*sessions)
    most = sum(map(_resident, processes))
    # The sum counts shared pages several times. The exact count is slow, so it is taken only if needed.
    return most if most <= allowed else sum(map(_proportional, processes))


def kernel_kills() -> int:
    """How many processes the kernel has killed for lack of memory since boot."""
    match = re.search(r"^oom_kill (\d+)", Path("/proc/vmstat").read_text(), re.MULTILINE)
    return int(match.group(1)) if match else 0


def _resident(pid: int) -> int:
    try:
        return heap.resident(pid)
    except (OSError, IndexError):
        return 0  # it has just ended, which its pipe reports


def _proportional(pid: int) -> int:
    """Resident bytes, with shared pages divided among their users. Slow: the kernel walks all pages."""
    rollup = kernel_files.text(f"/proc/{pid}/smaps_rollup")
    if rollup is None:
        return _resident(pid)  # ended, or not permitted: an upper bound
    match = re.search(r"^Pss:\s+(\d+) kB", rollup, re.MULTILINE)
    return int(match.group(1)) * 1024 if match else 0
