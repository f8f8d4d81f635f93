"""The watch over the machine while arms take turns: the accounts of their cores, and the pulse before and after."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ipexperf.bench import placement
from ipexperf.bench.kinds import Settings
from ipexperf.case import Case
from ipexperf.conduct import gate
from ipexperf.conduct.conditions import Conditions
from ipexperf.result import Sample

STRETCH_SECONDS = 0.5
"""Turns are judged in stretches of at least this length: the kernel's accounts have ticks of 10 ms a process."""


@dataclass(frozen=True, slots=True)
class Room:
    """The cores that workers may run on, and how many of them their threads can fill at a time."""

    cores: frozenset[int]
    threads: int


def room(settings: Sequence[Settings]) -> Room:
    """What workers that run at the same time have together: where nobody placed them, all that is ours."""
    cores = [frozenset[int]((one.placement or {}).get("cores") or placement.allowed()) for one in settings]
    threads = [min(len(held), one.threads or len(held)) for held, one in zip(cores, settings, strict=True)]
    return Room(frozenset[int]().union(*cores), sum(threads))


@dataclass(frozen=True, slots=True)
class Stretch:
    """What the machine did while some turns were taken, and why they do not count, or an empty text."""

    seconds: float
    shares: Mapping[str, float]
    busy: str


class Watch:
    """Begins before the arms are warm: what the pulse leaves in the caches is gone by the first sample."""

    def __init__(self, seats: Sequence[tuple[Case, Conditions]]) -> None:
        rooms = [room([part.settings for part in one.instances or (one,)]) for _, one in seats]
        self._cores = frozenset[int]().union(*(one.cores for one in rooms))
        self._threads = max((one.threads for one in rooms), default=1)
        # One reading for each dtype, for whose arithmetic the kernels are.
        self._felt = {case.dtype: (case, conditions) for case, conditions in reversed(seats)}
        self._before = {dtype: one.pulse.read(case, one.settings) for dtype, (case, one) in self._felt.items()}
        # The turns of several arms have accounts of their own: one slow moment at an end says little of them.
        self._several = len(seats) > 1
        self._workers: tuple[int, ...] = ()

    def begin(self, *workers: int) -> None:
        """Reads the accounts just before the first turn of these processes."""
        self._workers = workers
        self._last = gate.read(self._cores, *workers)

    @property
    def due(self) -> bool:
        """Whether the turns since the last reading are enough of them to be judged."""
        return time.monotonic() - self._last.at >= STRETCH_SECONDS

    def stretch(self, samples: Sequence[Sample]) -> Stretch:
        """Judges the turns since the last reading, whose samples these are."""
        now = gate.read(self._cores, *self._workers)
        shares = gate.between(self._last, now, samples, self._threads)
        seconds, self._last = now.at - self._last.at, now
        return Stretch(seconds, shares, gate.contended(shares))

    def end(self) -> Mapping[str, tuple[Mapping[str, float], str]]:
        """For each dtype the figures of its pulse, and the sentence of a machine that was too slow, or nothing."""
        return {
            dtype: one.pulse.judged(
                case, self._before[dtype], one.pulse.read(case, one.settings), throughout=self._several
            )
            for dtype, (case, one) in self._felt.items()
        }


def together(stretches: Sequence[Stretch]) -> dict[str, float]:
    """The shares of several stretches as one, each weighed by its length."""
    names = {name for one in stretches for name in one.shares}
    merged = {}
    for name in sorted(names):
        parts = [(one.shares[name], max(one.seconds, 1e-9)) for one in stretches if name in one.shares]
        merged[name] = sum(share * weight for share, weight in parts) / sum(weight for _, weight in parts)
    return merged
