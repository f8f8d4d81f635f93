"""Warm-up and samples. Standard library only: it times the steps of any session."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

from ipexperf.bench.clocks import perf_counter, process_time

BLOCK_SECONDS = 0.02
"""Minimum duration of a sample. Shorter steps are timed in blocks, so that the timer and interruptions matter less."""
WARM_SECONDS = 8.0
WARM_STEPS = 4
STEADY = 0.10

_TASKS = "/proc/self/task"
_accounts: dict[str, int] = {}
"""The open schedstat file of each thread."""
_delays: dict[str, int] = {}
"""The nanoseconds that each thread had waited at the last look. Ended threads are summed under `_ENDED`."""
_ENDED = ""


def run_delay() -> float:
    """Return the seconds that this process' threads waited for a core, from the scheduler's statistics.

    The wait of an ended thread still counts: otherwise the sum would fall, and a busy machine would look free.

    The files stay open: opening them for each sample paused the threads long enough to slow the next step.
    """
    threads = os.listdir(_TASKS)  # noqa: PTH208 - runs between samples, and pathlib is slower
    for thread in tuple(threads):
        try:
            if thread not in _accounts:
                _accounts[thread] = os.open(f"{_TASKS}/{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
            _delays[thread] = int(os.pread(_accounts[thread], 100, 0).split()[1])
        except (FileNotFoundError, ProcessLookupError):  # noqa: PERF203 - a thread may end while we look
            threads.remove(thread)
    for ended in _accounts.keys() - set(threads):
        os.close(_accounts.pop(ended))
        _delays[_ENDED] = _delays.get(_ENDED, 0) + _delays.pop(ended, 0)
    return sum(_delays.values()) / 1e9


def timed(step: Callable[[], Any], synchronise: Callable[[], None], steps: int = 1) -> float:
    """Return the seconds of so many steps."""
    synchronise()
    begin = perf_counter()
    for _ in range(steps):
        step()
    synchronise()
    return perf_counter() - begin


def warm(step: Callable[[], None], synchronise: Callable[[], None], limit: float = WARM_SECONDS) -> dict[str, float]:
    """Step until the last few steps agree with those before them, and choose the block for samples.

    `limit` is in seconds; few long steps may take twice as long.
    """
    begin = perf_counter()
    times: list[float] = []
    steady = False
    while not steady and (len(times) < 2 * WARM_STEPS or perf_counter() - begin < limit):
        times.append(timed(step, synchronise))
        if len(times) >= 2 * WARM_STEPS:
            late = statistics.median(times[-WARM_STEPS:])
            before = statistics.median(times[-2 * WARM_STEPS : -WARM_STEPS])
            steady = abs(late - before) <= STEADY * before
        elif perf_counter() - begin > 2 * limit:
            break  # two or three long steps are enough
    last = statistics.median(times[-WARM_STEPS:])
    return {
        "first_step": times[0],
        "warm_time": perf_counter() - begin,
        "steps": len(times),
        "steady": float(steady),
        "step": last,
        "block": max(1, math.ceil(BLOCK_SECONDS / max(last, 1e-7))),
    }


def serve(step: Callable[[], None], synchronise: Callable[[], None], at: float, seconds: float) -> dict[str, Any]:
    """Answer requests one after the other from a given time on. Each has a latency of its own, without blocks.

    CPU time and run delay cover the whole window: reading them between requests would add pauses.
    """
    while (remaining := at - perf_counter()) > 0:
        time.sleep(remaining)
    latencies: list[float] = []
    delay, cpu = run_delay(), process_time()
    synchronise()
    begin = now = perf_counter()
    while now < at + seconds or not latencies:
        step()
        synchronise()
        before, now = now, perf_counter()
        latencies.append(now - before)
    cpu, delay = process_time() - cpu, run_delay() - delay
    return {"begin": begin, "end": now, "latencies": latencies, "cpu": cpu, "delay": delay}


def sample(
    step: Callable[[], None], synchronise: Callable[[], None], count: int, block: int
) -> list[tuple[float, float, float]]:
    """Time `count` blocks of steps. Return wall time, CPU time and run delay of each, in seconds per step."""
    samples = []
    for _ in range(count):
        delay, cpu = run_delay(), process_time()
        wall = timed(step, synchronise, block)
        cpu, delay = process_time() - cpu, run_delay() - delay
        samples.append((wall / block, cpu / block, delay / block))
    return samples
