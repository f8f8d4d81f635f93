"""The pulse of a device, how quick it is just now: two fixed kernels, a product of matrices and a copy of memory.

A product is of a case's dtype, or of fp32 where there is none of it. Both are made once and kept: what is compared is
the same work at another moment.
"""

from __future__ import annotations

import math
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
"""Seconds that each takes at least: below that, it is the call that is timed, and not the device."""
AWAKE = 0.05
"""Seconds of products before a reading: what has rested needs a while to come back to its clock."""
COPIED = 2**26
"""Bytes of a copy: more than most caches hold, and little beside what a case takes. Some cards are done with it before
it is seen to have begun: there it is made several times."""


class Pulse:
    """Both kernels, on one device."""

    def __init__(self, device: Device, dtype: str) -> None:
        self._device = device
        self._trials = {"product": product(device, dtype), "copy": copy(device)}
        self.read()  # what the first call of a kernel makes is no part of any reading

    def read(self) -> dict[str, float]:
        """Seconds of each."""
        begin = time.perf_counter()
        while time.perf_counter() - begin < AWAKE:
            self._timed("product")
        taken: dict[str, list[float]] = {name: [] for name in self._trials}
        for _ in range(TIMES):
            for name in self._trials:
                taken[name].append(self._timed(name))
        return {name: statistics.median(several) for name, several in taken.items()}

    def _timed(self, name: str) -> float:
        return ceilings.timed(self._trials[name], self._device.synchronise, time.perf_counter)


def product(device: Device, dtype: str) -> Trial:
    """A product that takes a while, of this dtype if torch has one here."""
    make = ceilings.integers if dtype == "int8" else ceilings.plain
    try:
        return ceilings.grown(make, device, dtype, LONG)
    except (AttributeError, RuntimeError):
        return ceilings.grown(ceilings.plain, device, "fp32", LONG)


def copy(device: Device) -> Trial:
    """A copy from one part of memory to another, as often as takes a while."""
    source = device.put(torch.ones(COPIED // 4))
    target = torch.zeros_like(source)
    return repeated(Trial(f"a copy of {COPIED // 2**20} MiB", 2.0 * COPIED, lambda: target.copy_(source)), device)


def repeated(trial: Trial, device: Device) -> Trial:
    """The same so many times that it takes long enough. They are all asked for before one is waited for."""
    trial.run()
    once = min(ceilings.timed(trial, device.synchronise, time.perf_counter) for _ in range(ceilings.LOOKS))
    times = math.ceil(LONG / once)

    def run() -> None:
        for _ in range(times):
            trial.run()

    return Trial(f"{trial.how}, {times} times", trial.amount * times, run)
