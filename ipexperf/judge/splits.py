"""Choose candidates that fit: between a good and a bad one, around required changes, and without others.

`bisection` decides what to find out. This file finds a candidate for it that can be installed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Generic, TypeVar

C = TypeVar("C", bound=Hashable)

EXHAUSTIVE = 6
"""Up to so many suspects, every split is considered."""
TOGETHER = 3
"""Changes that are tried together where none fits alone and no tie is known."""
SHUFFLES = 8
"""Random orders in which splits are looked for, beside the given one and its reverse."""
FRACTIONS = (1 / 2, 3 / 8, 5 / 8, 1 / 4, 3 / 4, 1 / 8, 7 / 8)
"""Sizes of the splits that are considered, as shares of the suspects."""


class Splits(Generic[C]):
    """The candidates of one search. Never walks over a set, whose order differs from process to process."""

    def __init__(
        self,
        changes: Sequence[C],
        fits: Callable[[frozenset[C]], bool],
        ties: Mapping[C, Iterable[C]],
    ) -> None:
        self._changes = tuple(dict.fromkeys(changes))
        self._fits = fits
        self._fitting = {frozenset[C](): True, frozenset(self._changes): True}
        self._needs = _closures(self._changes, ties)
        self._needed = {
            change: frozenset(other for other in self._changes if change in self._needs[other])
            for change in self._changes
        }
        self._tied = any(len(needs) > 1 for needs in self._needs.values())
        self._worked: list[frozenset[C]] = []
        self._failed: list[frozenset[C]] = []

    def fit(self, candidate: frozenset[C]) -> bool:
        if candidate not in self._fitting:
            self._fitting[candidate] = self._fits(candidate)
        return self._fitting[candidate]

    def note(self, candidate: frozenset[C], *, works: bool) -> None:
        """Learn from an answer which changes might have to move together."""
        (self._worked if works else self._failed).append(candidate)

    def needed_by(self, changes: frozenset[C]) -> frozenset[C]:
        """These changes and all that is tied to them."""
        return changes.union(*(self._needs[change] for change in changes))

    def needing(self, changes: frozenset[C]) -> frozenset[C]:
        """These changes and all that cannot be taken without them."""
        return changes.union(*(self._needed[change] for change in changes))

    def best(self, low: frozenset[C], high: frozenset[C], spent: Collection[frozenset[C]]) -> frozenset[C] | None:
        """The most informative candidate between these that is not spent, or None if there is none.

        Half of the suspects tell most. After candidates that did not work, one that is likely to work tells more.
        """
        suspects = [change for change in self._changes if change in high and change not in low]
        half = low.union(suspects[: len(suspects) // 2])
        if len(suspects) > 1 and not self._failed and half not in spent and self.fit(half):
            return half
        blames = self._blames()

        def value(candidate: frozenset[C]) -> float:
            return _bits(len(candidate - low) / len(suspects)) * _chance(candidate, blames)

        options = [option for option in self._between(low, high, suspects) if option not in spent]
        return max(options, key=value, default=None)

    def containing(self, required: frozenset[C], high: frozenset[C]) -> Iterator[frozenset[C]]:
        """Candidates within `high` with the required changes: the smallest first, then those with one more."""
        least = self._least_with(required, high)
        yield least
        for change in self._changes:
            more = least | (self.needed_by(frozenset({change})) & high)
            if change in high and change not in least and self.fit(more):
                yield more

    def without(self, removed: frozenset[C], high: frozenset[C]) -> Iterator[frozenset[C]]:
        """Candidates within `high` without the removed changes: the largest first, then those with one less."""
        most = self.largest_without(removed, high)
        yield most
        for change in self._changes:
            less = most - self.needing(frozenset({change}))
            if change in most and less and self.fit(less):
                yield less

    def largest_without(self, removed: frozenset[C], high: frozenset[C]) -> frozenset[C]:
        most = high - self.needing(removed)
        if self.fit(most):
            return most
        for count in range(1, TOGETHER):
            for left_out in combinations([change for change in self._changes if change in most], count):
                if self.fit(most - self.needing(frozenset(left_out))):
                    return most - self.needing(frozenset(left_out))
        return self._climb(most)

    def _least_with(self, required: frozenset[C], high: frozenset[C]) -> frozenset[C]:
        least = self.needed_by(required) & high
        if self.fit(least):
            return least
        rest = [change for change in self._changes if change in high and change not in least]
        for count in range(1, TOGETHER):
            for company in combinations(rest, count):
                if self.fit(self.needed_by(least.union(company)) & high):
                    return self.needed_by(least.union(company)) & high
        return self._descend(least, high)

    def _between(self, low: frozenset[C], high: frozenset[C], suspects: list[C]) -> Iterator[frozenset[C]]:
        """Candidates that fit strictly between these. For many suspects a choice of them, without an order."""
        if len(suspects) <= EXHAUSTIVE:
            counts = sorted(range(1, len(suspects)), key=lambda count: abs(2 * count - len(suspects)))
            for count in counts:
                for taken in combinations(suspects, count):
                    if self.fit(low.union(taken)):
                        yield low.union(taken)
            return
        # Fixed seeds: a search that is taken up again must ask the same questions.
        orders = [suspects, suspects[::-1]]
        orders += [random.Random(seed).sample(suspects, len(suspects)) for seed in range(SHUFFLES)]  # noqa: S311 - no secret
        for order in orders:
            chain = list(self._chain(low, high, order))
            for fraction in FRACTIONS:
                if chain:
                    yield min(chain, key=lambda candidate: abs(len(candidate - low) - fraction * len(suspects)))

    def _chain(self, low: frozenset[C], high: frozenset[C], order: list[C]) -> Iterator[frozenset[C]]:
        """Candidates that fit, each within the next, in small steps from low to high."""
        at = low
        while True:
            at = self._step(at, high, [change for change in order if change not in at])
            if at == high:
                return
            yield at

    def _step(self, at: frozenset[C], high: frozenset[C], order: list[C]) -> frozenset[C]:
        """The next candidate above: with one more change and its ties, with some more, or with a whole core."""
        for count in range(1, TOGETHER + 1):
            for taken in combinations(order, count):
                above = at | (self.needed_by(frozenset(taken)) & high)
                if self.fit(above):
                    return above
            if self._tied:
                break
        return self._descend(at, high)

    def _descend(self, low: frozenset[C], high: frozenset[C]) -> frozenset[C]:
        """Leave out of `high` one change after the other, as long as it fits and contains `low` and more."""
        at = high
        again = True
        while again:
            again = False
            for change in self._changes:
                below = at - self.needing(frozenset({change}))
                if change in at and low < below and self.fit(below):
                    at, again = below, True
        return at

    def _climb(self, high: frozenset[C]) -> frozenset[C]:
        """Take one change of `high` after the other, as long as it fits."""
        at = frozenset[C]()
        again = True
        while again:
            again = False
            for change in self._changes:
                above = at | self.needed_by(frozenset({change}))
                if change in high and change not in at and above <= high and self.fit(above):
                    at, again = above, True
        return at

    def _blames(self) -> list[list[tuple[C, C]]]:
        """For each candidate that did not work, the pairs that it separated and no working candidate did.

        Both ends work, so something that should move together was separated.
        """
        return [
            [
                (inside, outside)
                for inside in self._changes
                if inside in failed
                for outside in self._changes
                if outside not in failed
                and not any((inside in working) != (outside in working) for working in self._worked)
            ]
            for failed in self._failed
        ]


def _chance(candidate: frozenset[C], blames: list[list[tuple[C, C]]]) -> float:
    """The probability that a candidate works, if any pair of a failure is equally likely to be its reason."""
    chance = 1.0
    for pairs in blames:
        if pairs:
            apart = sum((first in candidate) != (second in candidate) for first, second in pairs)
            chance *= 1 - apart / len(pairs)
    return chance


def _bits(share: float) -> float:
    """The information of an answer that is yes with this probability."""
    return -share * math.log2(share) - (1 - share) * math.log2(1 - share)


def _closures(changes: Sequence[C], ties: Mapping[C, Iterable[C]]) -> dict[C, frozenset[C]]:
    """Each change with all that must be taken with it, over any number of ties."""
    all_changes = frozenset(changes)
    closures = {}
    for change in changes:
        reached = {change}
        pending = [change]
        while pending:
            for other in ties.get(pending.pop(), ()):
                if other in all_changes and other not in reached:
                    reached.add(other)
                    pending.append(other)
        closures[change] = frozenset(reached)
    return closures
