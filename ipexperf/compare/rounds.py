"""The one loop over rounds: who needs one more, who plays beside whom, and what comes of it."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from ipexperf.compare.arm import Arm
from ipexperf.compare.round import Effort, Round
from ipexperf.conduct.conductor import Conductor
from ipexperf.report.lines import named

MOST_ARMS = 8
"""Most arms in a round: with more, the turns of two arms are too far apart in time."""

Say = Callable[[str], None]
Entry = TypeVar("Entry")
Member = TypeVar("Member")


class Schedule(Protocol):
    """When the arms of rounds are alive and whose turn it is: together, apart, or a walk through the same tests."""

    def play(self, rounds: Sequence[Sequence[Arm]], chance: random.Random, say: Say) -> Iterator[Round]:
        """Make a round of each of these arms, in their order. It may end before the last, with the budget."""


@dataclass(frozen=True, slots=True)
class Lineup(Generic[Member]):
    """Arms that play a round beside one another, and what they are of."""

    members: Sequence[Member]
    arms: Sequence[Arm]


class Rounds(ABC, Generic[Entry, Member]):
    """Rounds of what needs some: the cases of a group, or comparisons. Their results can be read at any time."""

    repeated: ClassVar[str]
    """What is said of those that play again because the machine was busy, before the reason."""

    def __init__(self, conductor: Conductor, say: Say, effort: Effort | None, chance: random.Random | None) -> None:
        self._conductor = conductor
        self._say = say
        self._effort = effort or Effort()
        self._chance = chance or random.Random()  # noqa: S311 - a start order, no secret
        self._servers = ExitStack()
        """The fork servers of the last round."""
        self._disturbed: list[tuple[str, str]] = []
        """The cases whose result of this round does not count because the machine was busy, each with the reason."""

    def play(self) -> Iterator[None]:
        """Make rounds until nobody needs one, or the budget is spent.

        Yields after each but the last, so that the caller can record what there is so far.
        """
        number = 0
        with self._servers:
            while entries := self.open():
                if self._conductor.spent():
                    self.cut(entries)
                    return
                if number:
                    yield
                number += 1
                self.begin(number, entries)
                waiting = entries
                while waiting:
                    waiting = self._play_part(waiting)
                    if waiting and self._conductor.spent():
                        break

    def _play_part(self, waiting: Sequence[Entry]) -> Sequence[Entry]:
        """Play the next part of a round. Returns who is left for a later part, and who plays again."""
        schedule, lineups, waiting = self.split(waiting)
        rounds = schedule.play([lineup.arms for lineup in lineups], self._chance, self._say)
        for played, lineup in zip(rounds, lineups, strict=False):  # a walk goes on behind its last round
            waiting = [*waiting, *self.take(lineup, played)]
        if self._disturbed:
            names, reasons = zip(*self._disturbed, strict=True)
            self._say(f"{named(names)}: {self.repeated}{reasons[0]}")
            self._disturbed.clear()
        return waiting

    @abstractmethod
    def open(self) -> Sequence[Entry]:
        """Those that need one more round."""

    @abstractmethod
    def cut(self, entries: Sequence[Entry]) -> None:
        """End these, because the budget is spent."""

    @abstractmethod
    def begin(self, number: int, entries: Sequence[Entry]) -> None:
        """Begin the round of this number for these."""

    @abstractmethod
    def split(self, waiting: Sequence[Entry]) -> tuple[Schedule, Sequence[Lineup[Member]], Sequence[Entry]]:
        """Choose who plays next and by which schedule. Returns also who is left for a later part of this round."""

    @abstractmethod
    def take(self, lineup: Lineup[Member], played: Round) -> Sequence[Entry]:
        """Take what came of a lineup. Returns who plays again in this round."""
