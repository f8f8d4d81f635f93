"""A round: arms measured side by side, and the ratio of any two of them."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ipexperf.compare.arm import Arm
from ipexperf.conduct.launch import how_it_ended
from ipexperf.errors import WorkerError
from ipexperf.judge import rounds as judge
from ipexperf.result import Launch, RoundRecord, Schedule, SeatRecord


@dataclass(frozen=True, slots=True)
class Effort:
    """The length of a round."""

    turns: int = 8
    """Minimum turns of each arm. Each arm also gets the samples and seconds that its conditions ask for."""
    most: int = 16
    """From this many turns on, a round no longer waits for precise ratios. If that is the minimum too, it is all."""
    precise: float = 0.01
    """Standard error of a log ratio at which a round may stop. Rounds differ from one another by more than that."""
    seconds: float = 0.05
    """Target length of a turn, without its untimed steps."""
    worth: float = 0.0
    """For so many seconds a round waits for precise ratios all the same: to start other processes takes as long."""
    keep: bool = False
    """Whether turns on a busy machine count too, because only ratios of arms do, and all of them shared it."""
    slow: float = math.inf
    """If no step takes fewer seconds than this, arms have two turns in a round."""


@dataclass(frozen=True, slots=True)
class ArmResult:
    """The results of one arm in a round. `times` has, for each of its processes, the seconds per step of every turn."""

    arm: Arm
    launch: Launch
    environment: Mapping[str, Any]
    times: tuple[tuple[float, ...], ...] = ()
    error: WorkerError | None = field(default=None, compare=False)
    """The error that ended the arm. It has no numbers then."""


def ended_launch(index: int, error: WorkerError, *, accelerator: bool) -> Launch:
    """The launch of this number whose process ended with an error, or could not be started."""
    return Launch(index, *how_it_ended(error, accelerator), log=error.log)


@dataclass(frozen=True, slots=True)
class Absence:
    """Why a session of pytest did not stand in a test."""

    how: str
    """`skipped`, `failed` or `missing`."""
    why: str
    error: WorkerError | None = None
    """How its process ended, if it did."""

    @property
    def broken(self) -> WorkerError | None:
        """What is wrong with its arm. That it has no such test, or skipped it, is no error."""
        if self.how == "skipped" or not self.why:
            return None
        return WorkerError("import_error" if self.how == "missing" else "error", str(self))

    def __str__(self) -> str:
        how = "is not there" if self.how == "missing" else self.how
        return f"its test {how}{f': {self.why}' if self.why else ''}"


@dataclass(frozen=True, slots=True)
class Round:
    """The result of each arm, in their order. `dropped` counts turns discarded because the machine was busy."""

    results: tuple[ArmResult, ...]
    schedule: Schedule
    started_at: str
    turns: int = 0
    dropped: int = 0
    seconds: float = 0.0
    busy: bool = False
    """Whether too few turns are left because the machine was busy for most of the round."""
    absences: tuple[Absence | None, ...] = ()
    """Why each arm did not stand in the test, if any did not. There are no results then."""
    uid: str = field(default_factory=lambda: uuid.uuid4().hex)

    def record(self, group: str, number: int, seats: Sequence[SeatRecord]) -> RoundRecord:
        """The record of this round, with the seats whose numbers count."""
        return RoundRecord(
            self.uid,
            group,
            number,
            self.schedule,
            tuple(seats),
            self.started_at,
            self.seconds,
            self.turns,
            self.dropped,
        )

    def log_ratio(self, base: int, other: int) -> float:
        """Log of how many times slower `other` is than `base`: one number per round."""
        first, second = self.results[base], self.results[other]
        return judge.log_ratio(first.times, second.times, paired=self.schedule == "together")
