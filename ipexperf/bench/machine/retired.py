"""Count the instructions that this process retires in user mode. Unlike time, they do not depend on what else runs.

The kernel counts them if the processor has counters and the kernel lets users read them: on most physical machines, and
hardly ever in a virtual machine.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import struct

INSTRUCTIONS = (0, 1)
"""Type and number of the event in `perf_event_open(2)`."""
PAGE_FAULTS = (1, 2)
"""An event of the kernel itself, which every machine can count."""
CALLS = {"x86_64": 298, "aarch64": 241}
"""Number of the system call. The C library has no function for it."""
SIZE = 112
"""The size of `struct perf_event_attr`, fifth version: any kernel since 4.1 knows it."""
WITH_TIMES = 0b11
"""Also read for how long the counter was enabled, and for how long it ran."""
INHERIT, NO_KERNEL, NO_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
CLOSE_ON_EXEC = 8


class Counter:
    """Counts an event in this thread, and in all threads and processes that it starts from now on."""

    def __init__(self, event: tuple[int, int] = INSTRUCTIONS) -> None:
        """Begin to count. Without permission, or without such a counter, `read` returns None."""
        kind, number = event
        flags = INHERIT | NO_KERNEL | NO_HYPERVISOR
        attributes = struct.pack("=IIQQQQQ", kind, SIZE, number, 0, 0, WITH_TIMES, flags).ljust(SIZE, b"\0")
        call = CALLS.get(platform.machine())
        library = ctypes.CDLL(None)
        self._file = library.syscall(call, attributes, 0, -1, -1, CLOSE_ON_EXEC) if call else -1

    def read(self) -> int | None:
        """Return the count so far, or None if the kernel does not count, or not all the time."""
        if self._file < 0:
            return None
        count, enabled, running = struct.unpack("=QQQ", os.read(self._file, 24))
        return int(count) if running == enabled else None

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


@functools.cache
def _of_process(pid: int) -> Counter:
    """Return the counter of this process. A forked process needs its own: the inherited one counts for its parent."""
    del pid
    return Counter()


def count() -> int | None:
    """Return the instructions of this process since the first call, or None if they are not counted."""
    return _of_process(os.getpid()).read()


def since(before: int | None) -> int | None:
    """Return the instructions since `before`, which `count` returned. None if either is unknown."""
    now = count()
    return None if now is None or before is None else now - before
