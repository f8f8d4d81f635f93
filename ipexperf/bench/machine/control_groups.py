"""The limits of the control groups of this process: its own, and those above it.

A container sees its own group as the root. A batch system or `systemd-run` puts a process into a group below the root,
and each group limits all that are in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from pathlib import PurePosixPath

ROOT = "/sys/fs/cgroup"
UNLIMITED = 2**62
"""Version 1 writes the largest number of whole pages where nothing is limited."""
Read = Callable[[str], "str | None"]
"""Returns the text of a file, or None if it cannot be read."""


def cpu_limit(read: Read) -> str | None:
    """Return the least quota of CPU time and its period, as version 2 writes them: `150000 100000`. None: unknown."""
    limits = list(_texts(read, "", "cpu.max"))
    for folder in _folders(read, "cpu"):
        quota, period = (read(f"{ROOT}/cpu{folder}/cpu.cfs_{name}_us") for name in ("quota", "period"))
        if quota is not None and period is not None:
            limits.append(f"{'max' if quota == '-1' else quota} {period}")
    return min(limits, key=cores, default=None)


def cores(limit: str | None) -> float:
    """Return how many cores' worth of time a limit allows. Infinite if it limits nothing."""
    quota, _, period = (limit or "max").partition(" ")
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) else inf


def memory_limit(read: Read) -> str | None:
    """Return the least limit of memory in bytes, or `max`. None: unknown."""
    limits = [*_texts(read, "", "memory.max"), *_texts(read, "memory", "memory.limit_in_bytes")]
    least = min(limits, key=_bytes, default=None)
    return "max" if least is not None and _bytes(least) == inf else least


def _bytes(limit: str) -> float:
    return int(limit) if limit.isdecimal() and int(limit) < UNLIMITED else inf


def _texts(read: Read, controller: str, name: str) -> Iterator[str]:
    """Yield what a file says in the group of this process and in all above it."""
    hierarchy = f"{ROOT}/{controller}".rstrip("/")
    for folder in _folders(read, controller):
        if (text := read(f"{hierarchy}{folder}/{name}")) is not None:
            yield text


def _folders(read: Read, controller: str) -> list[str]:
    """Return the group of this process in a hierarchy of version 1, and all above it; without a name of version 2."""
    for line in (read("/proc/self/cgroup") or "").splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            group = PurePosixPath(path)
            return ["" if str(folder) == "/" else str(folder) for folder in (group, *group.parents)]
    return [""]
