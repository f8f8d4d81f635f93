"""The contention gate: was the machine ours while a launch was measured?"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ipexperf.bench import guard
from ipexperf.result import Sample

OTHERS = 0.25
STEAL = 0.10
DELAY = 0.20
MEMORY = 0.10
"""Shares above which a launch is contended: other processes' CPU time, the hypervisor's steal, our threads held up, and
the time in which somebody waited for memory."""
PRESSURE = Path("/proc/pressure")
CORES = Path("/sys/devices/system/cpu")
RESOURCES = ("cpu", "memory", "io")


@dataclass(frozen=True, slots=True)
class Reading:
    """The machine's accounts at one moment, in seconds."""

    at: float
    busy: float
    steal: float
    ours: float
    stalled: Mapping[str, float] = field(default_factory=dict)
    """In which somebody waited for the CPU, for memory, for a disk: as far as the kernel tells."""
    mhz: float | None = None
    """The mean clock of the cores just now, where it is told."""


def _tick() -> int:
    return os.sysconf("SC_CLK_TCK")


def _spent(pid: int) -> int:
    """Ticks of a process, and of its children that ended: a rank that is over has not given its time back."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it ended while we looked: its parent has its ticks
    return sum(map(int, told.rsplit(")", 1)[1].split()[11:15]))


def pressure(folder: Path = PRESSURE) -> dict[str, float]:
    """Seconds since the start in which at least one task of the machine was stalled, by what it waited for."""
    found = {}
    for name in RESOURCES:
        with contextlib.suppress(OSError):  # a kernel without it, or one that has it switched off
            if told := re.search(r"^some .*total=(\d+)", (folder / name).read_text(), re.MULTILINE):
                found[name] = int(told[1]) / 1e6
    return found


def clock(folder: Path = CORES) -> float | None:
    """The mean clock of all cores in MHz, or None: most virtual machines tell none."""
    found = []
    for path in folder.glob("cpu[0-9]*/cpufreq/scaling_cur_freq"):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(path.read_text()) / 1000)
    return sum(found) / len(found) if found else None


def read(*workers: int) -> Reading:
    """Reads the machine's accounts and those of workers, with all that they started."""
    fields = [int(value) for value in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _, _, irq, softirq, steal = fields
    ours = sum(map(_spent, {x for pid in workers for x in (pid, *guard.members(pid))})) + sum(os.times()[:2]) * _tick()
    busy = user + nice + system + irq + softirq
    return Reading(time.monotonic(), busy / _tick(), steal / _tick(), ours / _tick(), pressure(), clock())


def between(before: Reading, after: Reading, samples: Sequence[Sample]) -> dict[str, float]:
    """Shares of one core-second of the machine (others, steal), of the sampled time (run delay, held up) and of the
    time that passed (pressure).

    Threads that outnumber the cores wait for one another: that is how the case runs. So they are held up for no more
    than the time in which the cores did not work for them.
    """
    cores = os.cpu_count() or 1
    passed = max(after.at - before.at, 1e-3)
    elapsed = passed * cores
    others = (after.busy - before.busy) - (after.ours - before.ours)
    wall = sum(sample.wall for sample in samples) * cores
    delay = sum(sample.delay for sample in samples) / wall if wall else 0.0
    own = sum(sample.cpu for sample in samples) / wall if wall else 1.0
    return {
        "others": max(0.0, others / elapsed),
        "steal": max(0.0, (after.steal - before.steal) / elapsed),
        "run_delay": delay,
        "held_up": min(delay, max(0.0, 1.0 - own)),
        **{
            f"{name}_pressure": max(0.0, (after.stalled[name] - before.stalled[name]) / passed)
            for name in RESOURCES
            if name in before.stalled and name in after.stalled
        },
        **({"mhz": after.mhz} if after.mhz is not None else {}),
    }


def contended(shares: dict[str, float]) -> str:
    """The sentence for a launch outside the gate, or an empty text."""
    limits = {"others": OTHERS, "steal": STEAL, "held_up": DELAY, "memory_pressure": MEMORY}
    told = {
        "others": "other processes took",
        "steal": "the hypervisor took",
        "held_up": "threads waited for a core",
        "memory_pressure": "somebody waited for memory",
    }
    over = [f"{told[name]} {shares[name]:.0%} (limit {limit:.0%})" for name, limit in limits.items()
            if shares.get(name, 0.0) > limit]  # fmt: skip
    return "; ".join(over)
