"""The watch over the machine around the samples of a launch: the accounts of the case's cores, and their pulse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipexperf.bench import placement
from ipexperf.bench.kinds import Settings
from ipexperf.case import Case
from ipexperf.conduct import gate
from ipexperf.result import Sample

if TYPE_CHECKING:
    from ipexperf.conduct.launch import Conditions


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


class Watch:
    """Begins before the case is warm: what the pulse leaves in the caches is gone by the first sample."""

    def __init__(self, case: Case, conditions: Conditions, *others: Conditions) -> None:
        """`conditions` of the case; and of what takes turns with it, where something does."""
        rooms = [room([part.settings for part in one.instances or (one,)]) for one in (conditions, *others)]
        self._cores = frozenset[int]().union(*(one.cores for one in rooms))
        self._threads = max(one.threads for one in rooms)
        self._case = case
        self._pulse = conditions.pulse
        # Of the whole case, not of one instance: the pulse is felt on the cores of all of them.
        self._settings = conditions.settings
        self._quick = self._pulse.read(case, self._settings)

    def begin(self, *workers: int) -> None:
        """Just before the first sample of these processes."""
        self._workers = workers
        self._before = gate.read(self._cores, *workers)

    def end(self, samples: Sequence[Sample]) -> tuple[Mapping[str, float], str]:
        """Just after the last one: figures for the record, and the sentence of a launch outside the gate, or nothing.

        The accounts are read first, so that what the pulse takes of the CPU is nobody's foreign load.
        """
        shares = gate.between(self._before, gate.read(self._cores, *self._workers), samples, self._threads)
        felt, slow = self._pulse.judged(self._case, self._quick, self._pulse.read(self._case, self._settings))
        return {**shares, **felt}, "; ".join(filter(None, (gate.contended(shares), slow)))
