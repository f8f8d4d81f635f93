"""Proof of streams: which threads worked, on which cores, and on how many images each."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ipexperf.bench.evidence import proof
from ipexperf.bench.machine.placement import ranges
from ipexperf.result import Check

ROUNDS = 5
"""Number of steps that shows every thread that takes part."""
TICKS = 0.05
"""Seconds of several clock ticks, with which the kernel updates the time of a running thread."""
_WORK = re.compile(rf"ipex_prepack::\w+_run|{'|'.join(map(re.escape, proof.HEAVY))}", re.ASCII)
_TASKS = Path("/proc/self/task")
T = TypeVar("T")


def shared(values: Sequence[T], streams: int) -> list[Sequence[T]]:
    """Split cores or images like the vendor: in order, with the remainder on the first streams."""
    each, more = divmod(len(values), streams)
    ends = [each * number + min(number, more) for number in range(streams + 1)]
    return [values[begin:end] for begin, end in itertools.pairwise(ends)]


def operators(step: Callable[[], Any]) -> dict[int, int]:
    """Count the arithmetic operators that each thread of this process ran in a step."""
    events = proof.traced(step, everywhere=True)
    return dict(Counter(event["tid"] for event in events if _WORK.fullmatch(str(event.get("name")))))


def affinity(thread: int) -> frozenset[int]:
    """Return the cores that a thread of this process may use."""
    return frozenset(os.sched_getaffinity(thread))


def _clocks() -> dict[int, int]:
    """Return the nanoseconds that each thread of this process has run."""
    clocks = {}
    for path in _TASKS.iterdir():
        with contextlib.suppress(OSError):  # the thread ended meanwhile
            clocks[int(path.name)] = int((path / "schedstat").read_text().split()[0])
    return clocks


def busy(step: Callable[[], Any]) -> set[int]:
    """Return the threads that ran during steps."""
    before = _clocks()
    until = time.monotonic() + TICKS
    rounds = 0
    while rounds < ROUNDS or time.monotonic() < until:
        step()
        rounds += 1
    return {thread for thread, clock in _clocks().items() if clock > before.get(thread, 0)}


def streams(counts: dict[int, int], count: int, whole: int) -> Check:
    """Check that as many threads as streams did arithmetic, and each ran the whole network."""
    text = f"{len(counts)} threads with {' and '.join(map(str, counts.values())) or 'no'} operators"
    ok = len(counts) == count and set(counts.values()) == {whole} and whole > 0
    return Check("streams", ok, text, f"{count} threads with {whole} operators each")


def cores(workers: Collection[int], busy_times: set[int], pool: Sequence[int], count: int) -> Check:
    """Check that each stream's thread is bound to its share of the cores, and that all cores were used.

    A stream with several cores has helper threads, which run no operators. They are identified by their cores.
    """
    shares = [set(share) for share in shared(sorted(pool), count)]
    homes = [[number for number, share in enumerate(shares) if affinity(thread) <= share] for thread in workers]
    # The calling thread splits and joins, and is bound to a core too. It does not count unless it is a stream.
    helpers = busy_times - ({threading.get_native_id()} - set(workers))
    bound = [affinity(thread) for thread in helpers if any(affinity(thread) <= share for share in shares)]
    filled = set().union(*bound)
    ok = sorted(homes) == [[number] for number in range(count)] and filled == set(pool)
    text = " and ".join(sorted(ranges(affinity(thread)) for thread in workers)) or "none"
    wanted = " and ".join(ranges(share) for share in shares)
    return Check(
        "stream_cores", ok, f"streams on cores {text}, {ranges(filled) or 'none'} busy", f"within {wanted}, all busy"
    )


def split(parts: Sequence[int], batch: int, count: int) -> Check:
    """Check that the batch was split into as many parts as streams, as equal as possible."""
    wanted = [len(share) for share in shared(range(batch), count)]
    return Check("split", list(parts) == wanted, _sum(parts), _sum(wanted))


def _sum(parts: Sequence[int]) -> str:
    return f"{' + '.join(map(str, parts)) or 'no'} images"
