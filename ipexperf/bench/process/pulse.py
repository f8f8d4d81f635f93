"""The pulse of a device: its current speed, measured by two fixed kernels, a matrix product and a copy of memory.

The product has the case's dtype, or fp32 if there is none in that dtype. Both kernels are made once and kept, so that
the same work is compared at different times.
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from ipexperf.bench.clocks import perf_counter
from ipexperf.bench.evidence import ceilings
from ipexperf.bench.evidence.ceilings import TimedWork
from ipexperf.bench.lazy import torch
from ipexperf.bench.measure import timed
from ipexperf.dtypes import PLAIN, quantised

if TYPE_CHECKING:
    from ipexperf.bench.api import Device

TIMES = 5
"""A reading is the median of this many runs, in turns."""
LONG = 0.004
"""Minimum seconds of a kernel: below that, the call would be timed and not the device."""
AWAKE = 0.05
"""Seconds of products before a reading, because an idle device needs a while to reach its clock rate."""
COPIED = 2**26
"""Bytes of a copy: more than most caches hold, and little compared with a case. It is repeated on fast devices."""


def product(device: Device, dtype: str) -> TimedWork:
    """Return a product that takes long enough, of this dtype if the device has one."""
    make = ceilings.integers if quantised(dtype) else ceilings.plain
    try:
        return ceilings.grown(make, device, dtype, LONG)
    except (AttributeError, RuntimeError):
        return ceilings.grown(ceilings.plain, device, PLAIN, LONG)


def copy(device: Device) -> TimedWork:
    """Return a copy of memory, repeated until it takes long enough."""
    source = device.put(torch.ones(COPIED // 4))
    target = torch.zeros_like(source)
    once = TimedWork(f"a copy of {COPIED // 2**20} MiB", 2.0 * COPIED, lambda: target.copy_(source))
    once.run()
    times = math.ceil(LONG / ceilings.quickest(once, device))

    def run() -> None:
        for _ in range(times):  # all are submitted before the device is waited for
            once.run()

    return TimedWork(f"{once.how}, {times} times", once.amount * times, run)


class Pulse:
    """Both kernels, on one device."""

    def __init__(self, device: Device, dtype: str) -> None:
        self._device = device
        self._trials = {"product": product(device, dtype), "copy": copy(device)}
        self.read()  # the first call of a kernel creates it

    def read(self) -> dict[str, float]:
        """Return the seconds of each kernel."""
        begin = perf_counter()
        while perf_counter() - begin < AWAKE:
            self._timed("product")
        times: dict[str, list[float]] = {name: [] for name in self._trials}
        for _ in range(TIMES):
            for name in self._trials:
                times[name].append(self._timed(name))
        return {name: statistics.median(several) for name, several in times.items()}

    def _timed(self, name: str) -> float:
        return timed(self._trials[name].run, self._device.synchronise)
