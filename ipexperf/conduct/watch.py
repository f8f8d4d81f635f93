"""Watch the CPU accounts of the machine while arms take turns."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ipexperf.bench.cell import Settings
from ipexperf.bench.machine import placement
from ipexperf.conduct import gate
from ipexperf.conduct.conditions import Conditions
from ipexperf.result import Sample

STRETCH_SECONDS = 0.5
"""Shortest stretch of turns that is judged. The kernel counts a process's CPU time in ticks of 10 ms."""


def room(settings: Sequence[Settings]) -> tuple[frozenset[int], int]:
    """The cores that these workers may run on, and how many of them their threads can use at once.

    Without a placement, that is every core that we may use.
    """
    cores = [frozenset[int]((worker.placement or {}).get("cores") or placement.allowed()) for worker in settings]
    threads = [min(len(usable), worker.threads or len(usable)) for usable, worker in zip(cores, settings, strict=True)]
    return frozenset[int]().union(*cores), sum(threads)


@dataclass(frozen=True, slots=True)
class MachineLoad:
    """The load of the machine during some turns. `busy` is the reason why they do not count, or empty."""

    seconds: float
    shares: Mapping[str, float]
    busy: str


class Watch:
    """Watches one round."""

    def __init__(self, conditions: Sequence[Conditions]) -> None:
        rooms = [room([part.settings for part in of_arm.instances or (of_arm,)]) for of_arm in conditions]
        self._cores = frozenset[int]().union(*(cores for cores, _ in rooms))
        self._threads = max((threads for _, threads in rooms), default=1)
        self._workers: tuple[int, ...] = ()
        self._policy = next((of_arm.gate for of_arm in conditions), gate.POLICY)

    def begin(self, *workers: int) -> None:
        """Read the CPU accounts just before the first turn of these processes."""
        self._workers = workers
        self._last = gate.read(self._cores, *workers)

    @property
    def due(self) -> bool:
        """Whether the turns since the last reading last long enough to be judged."""
        return time.monotonic() - self._last.at >= STRETCH_SECONDS

    def stretch(self, samples: Sequence[Sample]) -> MachineLoad:
        """Judge the turns since the last reading, given their samples."""
        now = gate.read(self._cores, *self._workers)
        shares = gate.between(self._last, now, samples, self._threads)
        seconds, self._last = now.at - self._last.at, now
        return MachineLoad(seconds, shares, gate.contended(shares, self._policy))


def averaged(stretches: Sequence[MachineLoad]) -> dict[str, float]:
    """Average the shares of several stretches, weighted by length."""
    names = {name for stretch in stretches for name in stretch.shares}
    merged = {}
    for name in sorted(names):
        parts = [(stretch.shares[name], max(stretch.seconds, 1e-9)) for stretch in stretches if name in stretch.shares]
        merged[name] = sum(share * weight for share, weight in parts) / sum(weight for _, weight in parts)
    return merged
