"""Warm-up and samples. Standard library only: it times the steps of any session."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

from ipexperf.bench.clocks import perf_counter
from ipexperf.bench.threads import Threads

BLOCK_SECONDS = 0.02
"""Minimum duration of a sample. Shorter steps are timed in blocks, so that the timer and interruptions matter less."""
WARM_SECONDS = 8.0
WARM_STEPS = 4
STEADY = 0.10

threads = Threads()


def timed(step: Callable[[], Any], synchronise: Callable[[], None], steps: int = 1) -> float:
    """Return the seconds of so many steps."""
    synchronise()
    begin = perf_counter()
    for _ in range(steps):
        step()
    synchronise()
    return perf_counter() - begin


def warm(step: Callable[[], None], synchronise: Callable[[], None], limit: float = WARM_SECONDS) -> dict[str, Any]:
    """Step until the last few steps agree with those before them, and choose the block for samples.

    `limit` is in seconds; few long steps may take twice as long.
    """
    since = threads.look()
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
    took = perf_counter() - begin
    threads.warmed(since, took)
    return {
        "first_step": times[0],
        "metrics": {"warm_time": took},
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
    opened = threads.look()
    synchronise()
    begin = now = perf_counter()
    while now < at + seconds or not latencies:
        step()
        synchronise()
        before, now = now, perf_counter()
        latencies.append(now - before)
    cpu, delay = threads.sampled(opened, threads.look(), now - begin)
    return {"begin": begin, "end": now, "latencies": latencies, "cpu": cpu, "delay": delay}


def sample(
    step: Callable[[], None], synchronise: Callable[[], None], count: int, block: int
) -> list[tuple[float, float, float]]:
    """Time `count` blocks of steps. Return wall time, CPU time and run delay of each, in seconds per step."""
    samples = []
    for _ in range(count):
        before = threads.look()
        wall = timed(step, synchronise, block)
        cpu, delay = threads.sampled(before, threads.look(), wall)
        samples.append((wall / block, cpu / block, delay / block))
    return samples
