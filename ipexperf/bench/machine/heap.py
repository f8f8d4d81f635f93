"""The heap of the C library: workers keep the memory that a step frees, so that each step finds it again.

glibc gives memory back to the kernel whenever the end of its heap is free, and takes it again page by page in the
next step. Whether the end is free depends on the place of one small allocation, so the processes of a case differ: we
measured 0 to 20,000 page faults per step, and step times that differ by a factor of 2.8 (ADR 41).
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import random
import re
import resource
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

KEEP = {
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
    "MALLOC_TOP_PAD_": str(64 * 2**20),
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_ARENA_MAX": "1",
}
"""Variables that make glibc keep memory: never give it back by itself, grow by 64 MiB, keep large blocks in the heap,
and use one heap for all threads. Otherwise autograd's thread has its own, which shrinks by other rules."""
PLAIN = {"GLIBC_TUNABLES": ""}
"""Variables that leave the heap at glibc's defaults."""
CHOICES = re.compile(r"MALLOC_|GLIBC_TUNABLES$", re.ASCII)
"""Variables with which users tune the heap themselves. A preloaded allocator ignores those of KEEP."""
SHAKEN = 1024
"""Blocks that `shake` leaves, half of them as holes."""
TURNS = 8
"""Least number of turns from which the growth of memory is known."""
GROWN = 2**20
GROWN_A_STEP = 16 * 2**10
"""A launch notes that its memory grew from so many bytes on, in all and a step. Our own records take less a step."""
GLIBC = "libc.so.6"
COUNTED: Mapping[str, Callable[[resource.struct_rusage], int]] = {"page_faults": lambda usage: usage.ru_minflt}
"""Metrics that the kernel counts for a process, each per step."""
MANY_FAULTS = 500
LARGE_SHARE = 0.1
"""A launch notes its page faults if there are so many per step, and the kernel takes this share of the CPU time."""


def defaults(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make glibc keep memory, or none if the user's variables tune the heap."""
    return {} if any(CHOICES.match(name) for name in variables) else KEEP


def trim() -> None:
    """Give free memory back to the kernel now."""
    ctypes.CDLL(None).malloc_trim(ctypes.c_size_t(0))


def shake() -> None:
    """Leave about 1 MiB of blocks and holes of random sizes, so that large blocks lie elsewhere in each process.

    Forks inherit one heap: all workers of one arm held 240 MB, all of its twin 380, and were 2 % slower (ADR 46).
    """
    library, chance = ctypes.CDLL(None), random.Random()  # noqa: S311 - no secret
    library.malloc.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    blocks = [library.malloc(ctypes.c_size_t(chance.randrange(16, 4096))) for _ in range(SHAKEN)]
    for block in chance.sample(blocks, SHAKEN // 2):
        library.free(block)


def resident(process: int | str = "self") -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()


class _Mallinfo2(ctypes.Structure):
    """What glibc tells of its heaps."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()  # noqa: SIM905
    )


def in_use() -> int | None:
    """Return the bytes that are allocated in the heap, or None if the allocator is not glibc's, from 2.33 on.

    Equal processes agree in them to some KiB. Their resident memory differs by MiB: how much of what is free lies in
    whole pages, which can be given back, is chance, and so is the number of Python's own arenas.
    """
    program = ctypes.CDLL(None)
    try:
        glibc = ctypes.CDLL(GLIBC)
        mallinfo = glibc.mallinfo2
    except (OSError, AttributeError):
        return None
    # A preloaded allocator takes the place of glibc's functions.
    if ctypes.cast(program.malloc, ctypes.c_void_p).value != ctypes.cast(glibc.malloc, ctypes.c_void_p).value:
        return None
    mallinfo.restype = _Mallinfo2
    info = mallinfo()
    return int(info.uordblks + info.hblkhd)


@dataclass(slots=True)
class StepUsage:
    """What the kernel counted for this process in the steps that were watched, and the CPU time that it took itself."""

    steps: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    kernel: float = 0.0
    cpu: float = 0.0

    @contextlib.contextmanager
    def watch(self, steps: int) -> Iterator[None]:
        """Count what the block uses, in which `steps` steps run."""
        before = resource.getrusage(resource.RUSAGE_SELF)
        yield
        after = resource.getrusage(resource.RUSAGE_SELF)
        kernel = after.ru_stime - before.ru_stime
        self.steps += steps
        self.counts.update({name: count(after) - count(before) for name, count in COUNTED.items()})
        self.kernel += kernel
        self.cpu += kernel + after.ru_utime - before.ru_utime

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of COUNTED. Empty if no step was watched."""
        return {name: self.counts[name] / self.steps for name in COUNTED} if self.steps else {}

    @property
    def note(self) -> str:
        """A note for the reader if page faults are a large part of the step, else an empty text."""
        faults = self.metrics.get("page_faults", 0.0)
        if faults < MANY_FAULTS or self.kernel < LARGE_SHARE * self.cpu:
            return ""
        return (
            f"{faults:,.0f} page faults per step: the kernel took {100 * self.kernel / self.cpu:.0f} % of the CPU "
            "time, because each step returns memory and takes it again"
        )


@dataclass(slots=True)
class Growth:
    """The memory of this process after each turn of samples, and the steps that it had run by then."""

    turns: list[tuple[int, int]] = field(default_factory=list)

    def after(self, steps: int) -> None:
        """Read the memory that is in no file, after a turn with so many steps."""
        before = self.turns[-1][0] if self.turns else 0
        _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
        self.turns.append((before + steps, (resident - shared) * resource.getpagesize()))

    @property
    def note(self) -> str:
        """A note if each turn of the second half ended with more memory than the one before, or an empty text."""
        half = self.turns[len(self.turns) // 2 - 1 :]
        if len(self.turns) < TURNS or any(after <= before for (_, before), (_, after) in itertools.pairwise(half)):
            return ""
        steps, grown = half[-1][0] - half[0][0], half[-1][1] - half[0][1]
        if grown < max(GROWN, steps * GROWN_A_STEP):
            return ""
        return f"took more memory after each turn: {grown / 2**20:.1f} MiB more in its last {steps} steps"
