"""Time blocks of steps by the device's own clock beside the host's, with events before and after a block.

This is not done in samples: on xpu a timing event was seen to cost 0.1 ms, too much for a sample of 20 ms.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from ipexperf.bench import outcome
from ipexperf.result import Check

SLACK = 1.05
"""Tolerated relative difference between the two clocks."""
GRAIN = 3e-4
"""Seconds per block that the two events may add to the device's time."""
SHORT = 0.5
"""The events enclose what the host times: a device's clock that shows less than this share of it is wrong."""


@dataclass(frozen=True, slots=True)
class BlockReading:
    """One block: seconds by both clocks. `done`: the device had finished when the host stopped its clock."""

    host: float
    device: float | None
    done: bool
    steps: int


class Stopwatch:
    """Records events around a block of steps."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self.readings: list[BlockReading] = []
        self.unable = ""
        """Why this runtime cannot measure times between events, or an empty text."""

    def start(self) -> None:
        try:
            self._mark(timing=not self.unable)
        except (RuntimeError, NotImplementedError) as error:
            self._give_up(error)
            self._mark(timing=False)

    def _mark(self, *, timing: bool) -> None:
        self._begin, self._end = (self._api.Event(enable_timing=timing) for _ in range(2))
        self._begin.record()

    def stop(self) -> None:
        self._end.record()

    def read(self, host: float, steps: int) -> None:
        """Read the device's clock. Called after the host has stopped its clock, and so after synchronising."""
        done = bool(self._end.query())
        self._end.synchronize()
        elapsed = self._elapsed()
        if elapsed is not None and elapsed < SHORT * host - GRAIN:
            self.unable = f"its clock says {elapsed:.4g} s for a block that took {host:.4g} s"
            elapsed = None
        self.readings.append(BlockReading(host, elapsed, done, steps))

    def _elapsed(self) -> float | None:
        if self.unable:
            return None
        try:
            return float(self._begin.elapsed_time(self._end)) / 1e3
        except (RuntimeError, NotImplementedError) as error:
            self._give_up(error)
            return None

    def _give_up(self, error: Exception) -> None:
        """Give up if the runtime has no such clock. Raise if the device was lost."""
        if self.unable or outcome.indicated(str(error)):
            raise error
        self.unable = str(error).strip().split("\n")[0]

    @property
    def device_time(self) -> float | None:
        """Return the seconds per step on the device: the median over blocks. None without a clock to be trusted."""
        if self.unable:
            return None
        times = [reading.device / reading.steps for reading in self.readings if reading.device is not None]
        return statistics.median(times) if times else None

    def check(self) -> Check:
        """Check that the host waited for the device: it had finished, and took no longer than the host measured."""
        late = sum(not reading.done for reading in self.readings)
        longer = [x for x in self.readings if x.device is not None and x.device > x.host * SLACK + GRAIN]
        text = f"{late} of {len(self.readings)} blocks ended before the device did"
        if longer:
            text += f"; device {longer[0].device:.4f} s, host {longer[0].host:.4f} s"
        return Check("synchronised", not late and not longer, text, "0; device within host")
