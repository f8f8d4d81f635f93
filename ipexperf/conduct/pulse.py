"""The pulse of a machine: two fixed kernels, timed before and after each launch by a process of their own.

In the case's process they would add to its memory and warm up its cold start. Their own process sleeps while the case
is measured.
"""

from __future__ import annotations

import contextlib
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ipexperf.bench import registry
from ipexperf.bench.api import Settings
from ipexperf.case import Case
from ipexperf.conduct import gate
from ipexperf.conduct.worker import Worker
from ipexperf.errors import WorkerError

USUAL = 5
"""From this many readings on, the usual time is their median. Before, it is the best reading."""
WAIT = 120.0
"""Time limit of a reading in seconds, including the start of the process."""

Reading = Mapping[str, float]
"""Seconds of each kernel. Empty if they could not be timed."""


@dataclass(slots=True)
class Pulses:
    """The pulses of all devices of a run, each with a process of its own, and their usual times."""

    start: Callable[[Case], Worker]
    load: tuple[str, ...]
    say: Callable[[str], None]
    _workers: dict[str, Worker] = field(default_factory=dict)
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _given_up: set[str] = field(default_factory=set)
    """Devices whose pulse failed. It is not tried again."""
    _readings: dict[tuple[str, str, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def read(self, case: Case, settings: Settings) -> Reading:
        """Time the kernels. If that fails, return no times: no launch should fail because of it.

        The process takes the placement of the first settings, because a process is placed before it imports anything.
        """
        if not registry.devices.get(case.device).pulse:
            return {}
        if case.device in self._given_up:
            return {}
        try:
            if case.device not in self._workers:
                self._workers[case.device] = self._open.enter_context(self.start(case))
            worker = self._workers[case.device]
            reply = worker.ask(
                "pulse",
                WAIT,
                device=case.device,
                dtype=case.dtype,
                load=self.load,
                placement=settings.placement,
                threads=settings.threads,
            )
            reading: Reading = reply["seconds"]
        except WorkerError as error:
            self._given_up.add(case.device)
            if case.device in self._workers:
                self._workers.pop(case.device).kill()
            self.say(f"the speed of {case.device} around a launch is unknown: {error.reason}")
            return {}
        return reading

    def judged(
        self, case: Case, before: Reading, after: Reading, *, throughout: bool = False
    ) -> tuple[dict[str, float], str]:
        """Figures for the record, and why the machine was too slow, or an empty text.

        If `throughout`, it was too slow only if it was slow both before and after.
        """
        figures: dict[str, float] = {}
        texts = []
        for name in before.keys() & after.keys():
            readings = self._readings[case.device, case.dtype, name]
            readings += [before[name], after[name]]
            figures.update({f"{name}_before": before[name], f"{name}_after": after[name]})
            texts.append(slow(name, before[name], after[name], readings, throughout=throughout))
        return figures, "; ".join(sorted(filter(None, texts)))

    def close(self) -> None:
        """Stop the processes."""
        self._workers.clear()
        self._open.close()


def slow(name: str, before: float, after: float, readings: list[float], *, throughout: bool = False) -> str:
    """Why this kernel was too slow, or an empty text. `readings` are all that it had, including these."""
    usual, called = (
        (statistics.median(readings), "the usual") if len(readings) >= USUAL else (min(readings), "its best so far")
    )
    times, limit = (min if throughout else max)(before, after) / usual, gate.POLICY.pulse
    return f"a fixed {name} took {times:.1f} times {called} (limit {limit:g})" if times > limit else ""
