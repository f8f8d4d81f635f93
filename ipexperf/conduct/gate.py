"""The contention gate: was the machine ours while a launch was measured?"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ipexperf.bench import guard
from ipexperf.result import Sample

OTHERS = 0.25
STEAL = 0.10
DELAY = 0.20
"""Shares above which a launch is contended: other processes' CPU time, the hypervisor's steal, our threads held up."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The machine's CPU accounts at one moment, in seconds."""

    at: float
    busy: float
    steal: float
    ours: float


def _tick() -> int:
    return os.sysconf("SC_CLK_TCK")


def _spent(pid: int) -> int:
    """Ticks of a process, and of its children that ended: a rank that is over has not given its time back."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it ended while we looked: its parent has its ticks
    return sum(map(int, told.rsplit(")", 1)[1].split()[11:15]))


def read(*workers: int) -> Reading:
    """Reads the machine's accounts and those of workers, with all that they started."""
    fields = [int(value) for value in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _, _, irq, softirq, steal = fields
    ours = sum(map(_spent, {x for pid in workers for x in (pid, *guard.members(pid))})) + sum(os.times()[:2]) * _tick()
    busy = user + nice + system + irq + softirq
    return Reading(time.monotonic(), busy / _tick(), steal / _tick(), ours / _tick())


def between(before: Reading, after: Reading, samples: Sequence[Sample]) -> dict[str, float]:
    """Shares of one core-second of the machine (others, steal) and of the sampled time (run delay, held up).

    Threads that outnumber the cores wait for one another: that is how the case runs. So they are held up for no more
    than the time in which the cores did not work for them.
    """
    cores = os.cpu_count() or 1
    elapsed = max(after.at - before.at, 1e-3) * cores
    others = (after.busy - before.busy) - (after.ours - before.ours)
    wall = sum(sample.wall for sample in samples) * cores
    delay = sum(sample.delay for sample in samples) / wall if wall else 0.0
    own = sum(sample.cpu for sample in samples) / wall if wall else 1.0
    return {
        "others": max(0.0, others / elapsed),
        "steal": max(0.0, (after.steal - before.steal) / elapsed),
        "run_delay": delay,
        "held_up": min(delay, max(0.0, 1.0 - own)),
    }


def contended(shares: dict[str, float]) -> str:
    """The sentence for a launch outside the gate, or an empty text."""
    limits = {"others": OTHERS, "steal": STEAL, "held_up": DELAY}
    told = {"others": "other processes took", "steal": "the hypervisor took", "held_up": "threads waited for a core"}
    over = [f"{told[name]} {shares[name]:.0%} (limit {limit:.0%})" for name, limit in limits.items()
            if shares[name] > limit]  # fmt: skip
    return "; ".join(over)
