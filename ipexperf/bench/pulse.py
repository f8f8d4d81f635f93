"""The pulse of a device, how quick it is just now: two fixed kernels, a product of matrices and a copy of memory.

A product is of a case's dtype, or of fp32 where there is none of it. Both are made once and kept: what is compared is
the same work at another moment.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from ipexperf.bench import ceilings
from ipexperf.bench.ceilings import Trial
from ipexperf.bench.lazy import torch

if TYPE_CHECKING:
    from ipexperf.bench.kinds import Device

TIMES = 5
"""A reading is the median of so many, in turns."""
LONG = 0.004
"""Seconds that a product takes at least."""
COPIED = 2**26
"""Bytes of a copy: more than most caches hold, and little beside what a case takes."""


class Pulse:
    """Both kernels, on one device."""

    def __init__(self, device: Device, dtype: str) -> None:
        self._device = device
        self._trials = {"product": product(device, dtype), "copy": copy(device)}
        self.read()  # what the first call of a kernel makes is no part of any reading

    def read(self) -> dict[str, float]:
        """Seconds of each."""
        taken: dict[str, list[float]] = {name: [] for name in self._trials}
        for _ in range(TIMES):
            for name, trial in self._trials.items():
                taken[name].append(ceilings.timed(trial, self._device.synchronise, time.perf_counter))
        return {name: statistics.median(several) for name, several in taken.items()}


def product(device: Device, dtype: str) -> Trial:
    """A product that takes a while, of this dtype if torch has one here."""
    make = ceilings.integers if dtype == "int8" else ceilings.plain
    try:
        return ceilings.grown(make, device, dtype, LONG)
    except (AttributeError, RuntimeError):
        return ceilings.grown(ceilings.plain, device, "fp32", LONG)


def copy(device: Device) -> Trial:
    """A copy from one part of memory to another."""
    source = device.put(torch.ones(COPIED // 4))
    target = torch.zeros_like(source)
    return Trial(f"a copy of {COPIED // 2**20} MiB", 2.0 * COPIED, lambda: target.copy_(source))
