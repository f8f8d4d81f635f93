"""The one loop over rounds: who needs one more, who plays beside whom, and what comes of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ipexperf.compare.arm import Arm
from ipexperf.compare.round import Round
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


class Agenda(Protocol[Entry, Member]):
    """What rounds are made for: the cases of a group, or comparisons."""

    @property
    def chance(self) -> random.Random:
        """Draws the order of starts and turns."""

    @property
    def say(self) -> Say:
        """Says how far the rounds are."""

    def spent(self) -> bool:
        """Whether the budget is spent, so that no round may begin."""

    def open(self) -> Sequence[Entry]:
        """Those that need one more round."""

    def cut(self, entries: Sequence[Entry]) -> None:
        """End these, because the budget is spent."""

    def begin(self, number: int, entries: Sequence[Entry]) -> None:
        """Begin the round of this number for these."""

    def split(self, waiting: Sequence[Entry]) -> tuple[Schedule, Sequence[Lineup[Member]], Sequence[Entry]]:
        """Choose who plays next and by which schedule. Returns also who is left for a later part of this round."""

    def take(self, lineup: Lineup[Member], played: Round) -> Sequence[Entry]:
        """Take what came of a lineup. Returns who plays again in this round."""

    def say_repeated(self) -> None:
        """Say which of those that were taken do not count and play again."""


def play(agenda: Agenda[Entry, Member]) -> Iterator[None]:
    """Make rounds until nobody needs one, or the budget is spent.

    Yields after each but the last, so that the caller can record what there is so far.
    """
    number = 0
    while entries := agenda.open():
        if agenda.spent():
            agenda.cut(entries)
            return
        if number:
            yield
        number += 1
        agenda.begin(number, entries)
        waiting = entries
        while waiting:
            schedule, lineups, waiting = agenda.split(waiting)
            rounds = schedule.play([lineup.arms for lineup in lineups], agenda.chance, agenda.say)
            for played, lineup in zip(rounds, lineups, strict=False):  # a walk goes on behind its last round
                waiting = [*waiting, *agenda.take(lineup, played)]
            agenda.say_repeated()
            if waiting and agenda.spent():
                break


def say_repeated(disturbed: list[tuple[str, str]], what: str, say: Say) -> None:
    """Say in a line what these cases do again, with the reason of the first, and forget them."""
    if disturbed:
        names, reasons = zip(*disturbed, strict=True)
        say(f"{named(names)}: {what}{reasons[0]}")
        disturbed.clear()
