"""Steps that become slower and slower within a launch, as those of a network that looks through all it has seen."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import replace

from ipexperf.result import Launch

STRETCHES = 8
"""The number of stretches into which the samples of a launch are divided. Each has a median."""
INVERSIONS = 2
"""Most of the 28 pairs of stretches of which the later one may be as quick as the earlier."""
TIMES = 1.1
"""The last stretch is at least this many times as slow as the first."""
LAUNCHES = 3
"""Least number of launches. All must slow down: a machine that drifts does so for one or two."""


def noted(launches: Sequence[Launch]) -> tuple[Launch, ...]:
    """The launches of a case, with a note in each that succeeded if the steps of all these became slower and slower."""
    slower = {launch.index: slowing(launch) for launch in launches if launch.outcome == "ok"}
    if len(slower) < LAUNCHES or None in slower.values():
        return tuple(launches)
    return tuple(
        replace(launch, notes=tuple(dict.fromkeys((*launch.notes, _note(times)))))
        if (times := slower.get(launch.index))
        else launch
        for launch in launches
    )


def slowdown(launches: Sequence[Launch]) -> float | None:
    """How many times as slow steps become in launches that all have the note, in the median. None: they have it not."""
    slower = [(launch, slowing(launch)) for launch in launches if launch.outcome == "ok"]
    noted_times = [times for launch, times in slower if times is not None and _note(times) in launch.notes]
    return statistics.median(noted_times) if noted_times and len(noted_times) == len(slower) else None


def _note(times: float) -> str:
    return f"had slower and slower steps, {times:.2f} times as slow at its end, as in all launches of the case"


def slowing(launch: Launch) -> float | None:
    """How many times as slow the last stretch of a launch is as the first, or None if its steps do not slow down."""
    walls = [sample.wall for sample in launch.samples]
    count = len(walls)
    if count < STRETCHES:
        return None
    bounds = [number * count // STRETCHES for number in range(STRETCHES + 1)]
    middles = [statistics.median(walls[first:last]) for first, last in itertools.pairwise(bounds)]
    inverted = sum(later <= middle for at, middle in enumerate(middles) for later in middles[at + 1 :])
    times = middles[-1] / middles[0]
    return times if inverted <= INVERSIONS and times >= TIMES else None
