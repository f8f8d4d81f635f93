"""Warm-up and samples. Standard library only: it times whatever a session steps."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, Protocol

BLOCK_SECONDS = 0.02
"""A sample lasts at least this long: shorter steps are timed in blocks, or the timer and its neighbours show."""
WARM_SECONDS = 8.0
WARM_STEPS = 4
STEADY = 0.10

_TASKS = "/proc/self/task"
_accounts: dict[str, int] = {}
"""The open schedstat file of each thread."""


def run_delay() -> float:
    """Seconds that this process' threads were ready to run and did not: the scheduler's own account.

    The files stay open: opening them anew for each sample paused the threads long enough to slow the next step.
    """
    total = 0
    threads = os.listdir(_TASKS)  # noqa: PTH208 - between samples: names are enough, and paths cost
    for thread in tuple(threads):
        try:
            if thread not in _accounts:
                _accounts[thread] = os.open(f"{_TASKS}/{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
            total += int(os.pread(_accounts[thread], 100, 0).split()[1])
        except (FileNotFoundError, ProcessLookupError):  # noqa: PERF203 - a thread may end while we look
            threads.remove(thread)
    for ended in _accounts.keys() - set(threads):
        os.close(_accounts.pop(ended))
    return total / 1e9


class Stopwatch(Protocol):
    """Another clock than the host's, beside it."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def read(self, host: float, steps: int) -> None: ...


def _timed(
    step: Callable[[], Any], synchronise: Callable[[], None], steps: int, stopwatch: Stopwatch | None = None
) -> float:
    synchronise()
    begin = time.perf_counter()
    if stopwatch:
        stopwatch.start()
    for _ in range(steps):
        step()
    if stopwatch:
        stopwatch.stop()
    synchronise()
    seconds = time.perf_counter() - begin
    if stopwatch:
        stopwatch.read(seconds, steps)
    return seconds


def clocked(step: Callable[[], Any], synchronise: Callable[[], None], block: int, stopwatch: Stopwatch) -> float:
    """One block, timed as a sample is, with a second clock running."""
    return _timed(step, synchronise, block, stopwatch)


def warm(step: Callable[[], None], synchronise: Callable[[], None]) -> dict[str, float]:
    """Steps until the last few agree with those before them (capped), and chooses the block for samples."""
    begin = time.perf_counter()
    times: list[float] = []
    steady = False
    while not steady and (len(times) < 2 * WARM_STEPS or time.perf_counter() - begin < WARM_SECONDS):
        times.append(_timed(step, synchronise, 1))
        if len(times) >= 2 * WARM_STEPS:
            late = statistics.median(times[-WARM_STEPS:])
            before = statistics.median(times[-2 * WARM_STEPS : -WARM_STEPS])
            steady = abs(late - before) <= STEADY * before
        elif time.perf_counter() - begin > 2 * WARM_SECONDS:
            break  # steps of many seconds: two or three of them are warm-up enough
    last = statistics.median(times[-WARM_STEPS:])
    return {
        "first_step": times[0],
        "warm_time": time.perf_counter() - begin,
        "steps": len(times),
        "steady": float(steady),
        "step": last,
        "block": max(1, math.ceil(BLOCK_SECONDS / max(last, 1e-7))),
    }


def serve(step: Callable[[], None], synchronise: Callable[[], None], at: float, seconds: float) -> dict[str, Any]:
    """Answers requests from a moment of the machine's clock on, one after the other: each one's latency, never a block.

    CPU time and run delay are of the whole window: to look between two requests would be a pause that no server has.
    """
    while (left := at - time.perf_counter()) > 0:
        time.sleep(left)
    latencies: list[float] = []
    delay, cpu = run_delay(), time.process_time()
    synchronise()
    begin = now = time.perf_counter()
    while now < at + seconds or not latencies:
        step()
        synchronise()
        before, now = now, time.perf_counter()
        latencies.append(now - before)
    cpu, delay = time.process_time() - cpu, run_delay() - delay
    return {"begin": begin, "end": now, "latencies": latencies, "cpu": cpu, "delay": delay}


def sample(
    step: Callable[[], None], synchronise: Callable[[], None], count: int, block: int
) -> list[tuple[float, float, float]]:
    """Times `count` blocks of steps: wall, CPU and run delay, each in seconds a step."""
    samples = []
    for _ in range(count):
        delay, cpu = run_delay(), time.process_time()
        wall = _timed(step, synchronise, block)
        cpu, delay = time.process_time() - cpu, run_delay() - delay
        samples.append((wall / block, cpu / block, delay / block))
    return samples
