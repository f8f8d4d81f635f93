"""The CPU. Threads are set once before anything is built, because packed weights depend on them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.cell import Settings
from ipexperf.bench.device import Device
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine import heap, placement
from ipexperf.bench.machine.facts import Facts
from ipexperf.result import Check

_RESET_PEAK = "5"
"""Value to write to clear_refs to reset the peak of resident memory."""

_LIMITS = ("OMP_THREAD_LIMIT", "KMP_DEVICE_THREAD_LIMIT", "KMP_ALL_THREADS")
"""Variables that limit the threads of an OpenMP runtime, the last two of Intel's."""


class Cpu(Device):
    name = "cpu"
    called = ("intel",)
    hosted = True
    quantizer = "x86"
    dynamic_scales = True
    oneccl = True
    _threads: int | None = None
    """The number that `start` set."""
    _before = 0
    """Resident bytes at the reset: mostly libraries."""
    _used_before: int | None = None
    """Bytes that were allocated in the heap at the reset."""

    def why_not(self, facts: Facts) -> str | None:
        return facts.missing("torch")

    def start(self, settings: Settings) -> None:
        self._threads = settings.threads or len(placement.allowed())
        torch.set_num_threads(self._threads)

    def synchronise(self) -> None:
        """Do nothing: calls on the CPU are synchronous."""

    def put(self, value: Any) -> Any:
        return value

    def reset_memory(self) -> None:
        heap.trim()  # memory that imports freed must not count as the case's
        Path("/proc/self/clear_refs").write_text(_RESET_PEAK)
        self._before = _resident()
        self._used_before = heap.in_use()

    def memory(self) -> dict[str, float]:
        """Return the case's own peak, without that of libraries such as torch, and what the allocator says it holds."""
        peak, used = float(max(0, _resident() - self._before)), heap.in_use()
        if used is None or self._used_before is None:
            return {"peak_memory": peak}
        return {"peak_memory": peak, "held_memory": max(0, used - self._used_before)}

    def proof(self, step: Callable[[], Any], block: int) -> list[Check]:
        """Check that the steps left torch the threads that it started with: a network may set others."""
        if self._threads is None:
            return []
        # torch reports what it asked for. OpenMP gives it no more than these allow.
        limits = [int(limit) for name in _LIMITS if (limit := os.environ.get(name, "")).isdecimal()]
        actual = min([torch.get_num_threads(), *limits])
        return [Check("threads", actual == self._threads, str(actual), str(self._threads))]

    def metrics(self, step: Callable[[], Any], block: int) -> dict[str, float]:
        return {"library_memory": float(self._before)}


def _resident() -> int:
    """Return the peak of resident memory of this process since the last reset."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    if match is None:
        raise RuntimeError("the kernel does not report VmHWM")
    return int(match.group(1)) * 1024


registry.devices.add("cpu", Cpu())
