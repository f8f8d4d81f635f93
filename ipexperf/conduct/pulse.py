"""The pulse of a machine: two fixed kernels, timed before and after each launch by a process of their own.

In the case's process they would be part of what it takes of memory, and of what a cold start warms up. Theirs sleeps
while the case is measured.
"""

from __future__ import annotations

import contextlib
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ipexperf.bench import registry
from ipexperf.bench.kinds import Settings
from ipexperf.case import Case
from ipexperf.conduct.worker import Worker
from ipexperf.errors import WorkerError

SLOW = 1.5
"""A kernel that takes so many times what is usual in this run tells of a machine that was not itself."""
USUAL = 5
"""The median of so many readings is usual; of fewer, the best is."""
WAIT = 120.0
"""Seconds that a reading may take, with the process's start."""

Reading = Mapping[str, float]
"""Seconds of each kernel; empty where nobody feels the pulse."""


class Pulse(Protocol):
    """What a launch asks."""

    def read(self, case: Case, settings: Settings) -> Reading: ...

    def judged(
        self, case: Case, before: Reading, after: Reading, *, throughout: bool = False
    ) -> tuple[dict[str, float], str]:
        """Figures for the record, and the sentence for a launch outside the gate, or an empty text.

        `throughout`: only a machine that was slow before and after is outside it.
        """
        ...


class NoPulse:
    """Nobody feels it."""

    def read(self, case: Case, settings: Settings) -> Reading:
        del case, settings
        return {}

    def judged(
        self, case: Case, before: Reading, after: Reading, *, throughout: bool = False
    ) -> tuple[dict[str, float], str]:
        del case, before, after, throughout
        return {}, ""


NO_PULSE = NoPulse()


@dataclass(slots=True)
class Pulses:
    """Starts a process for each device that has a pulse, with the first case there, and knows what is usual."""

    start: Callable[[Case], Worker]
    load: tuple[str, ...]
    say: Callable[[str], None]
    _workers: dict[str, Worker] = field(default_factory=dict)
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _given_up: set[str] = field(default_factory=set)
    """The devices on which it failed: there it is not tried again."""
    _seen: dict[tuple[str, str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def read(self, case: Case, settings: Settings) -> Reading:
        """How quick the machine is just now, or nothing: that nobody can say so ends no launch.

        The first settings are those of the process: it is placed once, before it imports anything, as all of a run are.
        """
        if not registry.devices.get(case.device).pulse:
            return {}
        if case.device in self._given_up:
            return {}
        try:
            if case.device not in self._workers:
                self._workers[case.device] = self._open.enter_context(self.start(case))
            worker = self._workers[case.device]
            told = worker.ask(
                "pulse",
                WAIT,
                device=case.device,
                dtype=case.dtype,
                load=self.load,
                placement=settings.placement,
                threads=settings.threads,
            )
            found: Reading = told["seconds"]
        except WorkerError as error:
            self._given_up.add(case.device)
            if case.device in self._workers:
                self._workers.pop(case.device).kill()
            self.say(f"nothing says how quick {case.device} is around a launch: {error.reason}")
            return {}
        return found

    def judged(
        self, case: Case, before: Reading, after: Reading, *, throughout: bool = False
    ) -> tuple[dict[str, float], str]:
        """Both readings, and how many times the usual the slower one is, or the quicker one of a whole round."""
        figures: dict[str, float] = {}
        said = []
        for name in before.keys() & after.keys():
            seen = self._seen[case.device, case.dtype, name]
            seen += [before[name], after[name]]
            figures.update({f"{name}_before": before[name], f"{name}_after": after[name]})
            said.append(slow(name, before[name], after[name], seen, throughout=throughout))
        return figures, "; ".join(sorted(filter(None, said)))

    def close(self) -> None:
        """Ends the processes."""
        self._workers.clear()
        self._open.close()


def slow(name: str, before: float, after: float, seen: list[float], *, throughout: bool = False) -> str:
    """Says that a kernel was too slow on one side of a launch, or nothing; `seen` are all its readings, these too."""
    usual, called = (statistics.median(seen), "the usual") if len(seen) >= USUAL else (min(seen), "its best so far")
    times = (min if throughout else max)(before, after) / usual
    return f"a fixed {name} took {times:.1f} times {called} (limit {SLOW:g})" if times > SLOW else ""
