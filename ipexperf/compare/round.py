"""A round: what arms that were measured beside one another did, and what that says of any two of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ipexperf.compare.arm import Arm
from ipexperf.errors import WorkerError
from ipexperf.judge import rounds as judge
from ipexperf.result import Launch, Schedule


@dataclass(frozen=True, slots=True)
class Effort:
    """How long a round is."""

    turns: int = 8
    """Each arm has at least so many turns that count, and as many samples and seconds as its conditions ask for."""
    most: int = 16
    """And at most so many, where the ratios are not precise enough before."""
    precise: float = 0.01
    """A log ratio with this standard error is known well enough: rounds differ by twice that and more."""
    seconds: float = 0.05
    """A turn's samples last about so long together."""
    samples: int | None = None
    """So many samples a turn has, however long they last."""

    @classmethod
    def asked(cls, turns: int | None, samples: int | None) -> Effort:
        """As many turns and samples a turn as somebody named; what was not named is found by measurement."""
        effort = cls(samples=samples)
        return effort if turns is None else replace(effort, turns=turns, most=turns)


@dataclass(frozen=True, slots=True)
class Side:
    """What one arm did in a round. `times` holds, for each of its processes, the seconds a step of its turns."""

    arm: Arm
    launch: Launch
    environment: Mapping[str, Any]
    times: tuple[tuple[float, ...], ...] = ()
    error: WorkerError | None = field(default=None, compare=False)
    """What ended it: then it has no numbers."""


@dataclass(frozen=True, slots=True)
class Round:
    """The sides stand in the order of the arms. `dropped` turns were taken on a machine that was busy."""

    sides: tuple[Side, ...]
    schedule: Schedule
    turns: int = 0
    dropped: int = 0
    seconds: float = 0.0
    thin: bool = False
    """Whether too few turns are left: the machine was busy with something else for most of it."""

    def log_ratio(self, base: int, other: int) -> float:
        """How many times slower one side is than another, as a logarithm: one number a round."""
        first, second = self.sides[base], self.sides[other]
        return judge.log_ratio(first.times, second.times, paired=self.schedule == "together")


class Scheduler(Protocol):
    """A way to let arms run beside one another. It never raises what only one of its arms is at fault for."""

    @property
    def name(self) -> Schedule: ...

    def play(self, arms: Sequence[Arm], effort: Effort, chance: random.Random, say: Callable[[str], None]) -> Round:
        """One round: a side for each arm, in their order."""
        ...
