"""The contention gate: whether other programs used the cores of a case while a launch was measured."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ipexperf.bench.machine import kernel_files, placement
from ipexperf.bench.process import guard
from ipexperf.judge.policy import GatePolicy
from ipexperf.result import Sample

POLICY = GatePolicy()
STAT = Path("/proc/stat")
PRESSURE = Path("/proc/pressure")
CORES = Path("/sys/devices/system/cpu")
RESOURCES = ("cpu", "memory", "io")


@dataclass(frozen=True, slots=True)
class Account:
    """Seconds that one core was busy, and stolen from, since boot."""

    busy: float
    steal: float


@dataclass(frozen=True, slots=True)
class Reading:
    """CPU accounts of a case's cores and processes at one moment, in seconds."""

    at: float
    cores: Mapping[int, Account]
    ours: float
    stalled: Mapping[str, float] = field(default_factory=dict)
    """Seconds in which any process waited for the CPU, memory or a disk, as far as the kernel reports it."""
    mhz: float | None = None
    """The mean clock of the cores, if it can be read."""


def _tick() -> int:
    return os.sysconf("SC_CLK_TCK")


def _spent(pid: int) -> int:
    """CPU ticks of a process and of its children that have ended."""
    try:
        fields = kernel_files.stat_fields(pid)
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it has just ended: its parent has its ticks
    return sum(map(int, fields[11:15]))


def accounts(cores: Collection[int], ours: Collection[int], file: Path = STAT) -> dict[int, Account]:
    """The account of each of these cores. `ours` are all cores that we may use.

    If one of ours is missing, this is a container that renumbers cores, and all cores listed are ours.
    """
    by_core = {}
    for number, fields in re.findall(r"^cpu(\d+) (.+)$", file.read_text(), re.MULTILINE):
        user, nice, system, _, _, irq, softirq, steal = map(int, fields.split()[:8])
        by_core[int(number)] = Account((user + nice + system + irq + softirq) / _tick(), steal / _tick())
    return {core: by_core[core] for core in cores} if by_core.keys() >= set(ours) else by_core


def pressure(folder: Path = PRESSURE) -> dict[str, float]:
    """Seconds since boot in which at least one task was stalled, by resource."""
    stalled = {}
    for name in RESOURCES:
        text = kernel_files.text(folder / name) or ""  # the kernel may lack it, or have it switched off
        if match := re.search(r"^some .*total=(\d+)", text, re.MULTILINE):
            stalled[name] = int(match[1]) / 1e6
    return stalled


def clock(cores: Collection[int], folder: Path = CORES) -> float | None:
    """The mean clock of these cores in MHz. None in most virtual machines."""
    values = []
    for core in cores:
        text = kernel_files.text(folder / f"cpu{core}" / "cpufreq" / "scaling_cur_freq") or ""
        if text.isdecimal():
            values.append(int(text) / 1000)
    return sum(values) / len(values) if values else None


def read(cores: Collection[int], *workers: int) -> Reading:
    """Read the accounts of these cores, and of the workers with everything they started."""
    by_core = accounts(cores, {*cores, *placement.allowed()})
    ours = sum(map(_spent, {*workers, *guard.members(*workers)})) + sum(os.times()[:2]) * _tick()
    return Reading(time.monotonic(), by_core, ours / _tick(), pressure(), clock(cores))


def between(before: Reading, after: Reading, samples: Sequence[Sample], threads: int) -> dict[str, float]:
    """Shares between two readings: of the cores' time (others, steal), of the threads' time while they were sampled
    (run delay, held up), and of wall time (pressure).

    Threads that outnumber the cores wait for one another, which is no contention. So `threads` is at most the number of
    cores, and held-up time is at most the time in which the cores did not work for them.
    """
    passed = max(after.at - before.at, 1e-3)
    cores = before.cores.keys() & after.cores.keys()  # ignore cores that went offline meanwhile
    elapsed = passed * max(len(cores), 1)
    busy = sum(after.cores[core].busy - before.cores[core].busy for core in cores)
    steal = sum(after.cores[core].steal - before.cores[core].steal for core in cores)
    wall = sum(sample.wall for sample in samples) * threads
    delay = sum(sample.delay for sample in samples) / wall if wall else 0.0
    working = sum(sample.cpu for sample in samples) / wall if wall else 1.0
    return {
        "others": max(0.0, (busy - (after.ours - before.ours)) / elapsed),
        "steal": max(0.0, steal / elapsed),
        "run_delay": delay,
        "held_up": min(delay, max(0.0, 1.0 - working)),
        **{
            f"{name}_pressure": max(0.0, (after.stalled[name] - before.stalled[name]) / passed)
            for name in RESOURCES
            if name in before.stalled and name in after.stalled
        },
        **({"mhz": after.mhz} if after.mhz is not None else {}),
    }


def contended(shares: Mapping[str, float], policy: GatePolicy) -> str:
    """Why these shares are contended, or an empty text."""
    phrases = {
        "others": "other processes took",
        "steal": "the hypervisor took",
        "held_up": "threads waited for a core",
        "memory_pressure": "processes waited for memory",
    }
    limits = {name: getattr(policy, name) for name in phrases}
    over = [name for name, limit in limits.items() if shares.get(name, 0.0) > limit]
    return "; ".join(f"{phrases[name]} {100 * shares[name]:.0f} % (limit {100 * limits[name]:.0f} %)" for name in over)
