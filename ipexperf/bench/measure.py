"""Warm-up and samples. Standard library only: it times whatever a session steps."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path

BLOCK_SECONDS = 0.02
"""A sample lasts at least this long: shorter steps are timed in blocks, or the timer and its neighbours show."""
WARM_SECONDS = 8.0
WARM_STEPS = 4
STEADY = 0.10

_TASKS = Path("/proc/self/task")


def run_delay() -> float:
    """Seconds that this process' threads were ready to run and did not: the scheduler's own account."""
    total = 0
    for task in _TASKS.iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):  # noqa: PERF203 - a thread may end while we look
            continue
    return total / 1e9


def _timed(step: Callable[[], None], synchronise: Callable[[], None], steps: int) -> float:
    synchronise()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    synchronise()
    return time.perf_counter() - begin


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
        "block": max(1, math.ceil(BLOCK_SECONDS / max(last, 1e-7))),
    }


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
