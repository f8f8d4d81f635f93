"""Find where in an ordered list, such as the versions of a package or commits, a case became slower.

As in `bisection`, a search is a generator that is sent the answer to each question. Here a question is the index of an
entry.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ipexperf.judge.bisection import MAX_UNSURE, Answer, left_after

OrderedOutcome: TypeAlias = Literal["culprit", "inseparable", "alike", "cannot tell"]


@dataclass(frozen=True, slots=True)
class OrderedFinding:
    """The end of a search. `suspects` are the entries of which one is the first slow one.

    - culprit: `first_bad`, the entry after `last_good`.
    - inseparable: all entries between both are skipped.
    - alike: the bad end is not bad.
    - cannot tell: answers are unsure, or contradict one another.
    """

    outcome: OrderedOutcome
    reason: str
    suspects: range = range(0)
    questions: int = 0
    last_good: int | None = None
    first_bad: int | None = None


OrderedAsking: TypeAlias = Generator[int, Answer, OrderedFinding]


def search_ordered(count: int, *, confirm: bool = False) -> OrderedAsking:
    """Yield indexes, be sent their answers, and return the finding. No index is yielded twice.

    The first entry is good by definition. The last is asked first. `confirm` asks for the next entry on either side of
    the finding too, at most two more questions. Then one wrong answer moves the finding by one entry at most: a wrong
    answer about the first slow entry itself leaves no trace in the others.
    """
    return _OrderedSearch(count, confirm=confirm).run()


def ordered_questions_left(count: int, answers: Iterable[Answer] = (), *, confirm: bool = False) -> int:
    """How many questions are left at most after these answers, the pending one included, if none is skipped."""
    return left_after(_OrderedSearch(count, confirm=confirm), answers)


class _OrderedSearch:
    def __init__(self, count: int, *, confirm: bool) -> None:
        self._answers: dict[int, Answer] = {}
        self._low = 0
        self._high = count - 1
        self._end = count - 1
        self._to_confirm = 2 if confirm else 0
        self._confirming = False

    def left(self) -> int:
        if self._confirming:
            return self._to_confirm
        span = self._high - self._low
        return math.ceil(math.log2(span)) + self._to_confirm + (not self._answers)

    def run(self) -> OrderedAsking:
        if self._end == 0:
            return OrderedFinding("alike", "there is only one entry")
        answer = yield from self._ask(self._end)
        if answer is Answer.GOOD:
            return self._finding("alike", "both ends are alike: the bad end is not slower than the good end")
        if answer is Answer.SKIP:
            return self._cannot_tell("the bad end could not be measured")
        if answer is Answer.UNSURE:
            return self._cannot_tell("the noise is larger than the difference between both ends")
        yield from self._narrow()
        between = range(self._low + 1, self._high)
        unsure = [index for index in between if self._answers.get(index) is Answer.UNSURE]
        if unsure:
            return self._cannot_tell(f"{len(unsure)} of the entries between are lost in the noise")
        if self._to_confirm and not (yield from self._confirmed()):
            self._low, self._high = 0, self._end
            return self._cannot_tell("the answers contradict one another: an entry is bad, and a later one good")
        if between:
            text = "the entries between the last good and the first bad one could not be measured"
            return self._finding("inseparable", text, range(self._low + 1, self._high + 1))
        text = "the entry before it is good"
        return self._finding("culprit", text, range(self._high, self._high + 1))

    def _narrow(self) -> Generator[int, Answer, None]:
        """Halve what is between the last good and the first bad entry, past those without an answer."""
        unsure = 0
        while unsure <= MAX_UNSURE:
            open_entries = [index for index in range(self._low + 1, self._high) if index not in self._answers]
            if not open_entries:
                return
            middle = (self._low + self._high) / 2
            index = min(open_entries, key=lambda index: abs(index - middle))
            answer = yield from self._ask(index)
            if answer is Answer.GOOD:
                self._low = index
            elif answer is Answer.BAD:
                self._high = index
            unsure += answer is Answer.UNSURE

    def _confirmed(self) -> Generator[int, Answer, bool]:
        """Ask for the next entry on either side. Return whether no answer contradicts the finding."""
        self._confirming = True
        beside = [(self._low - 1, Answer.BAD), (self._high + 1, Answer.GOOD)]
        beside = [(index, against) for index, against in beside if 0 < index < self._end and index not in self._answers]
        self._to_confirm = len(beside)
        for index, against in beside:
            if (yield from self._ask(index)) is against:
                return False
            self._to_confirm -= 1
        return True

    def _ask(self, index: int) -> Generator[int, Answer, Answer]:
        answer = yield index
        self._answers[index] = answer
        return answer

    def _cannot_tell(self, reason: str) -> OrderedFinding:
        return self._finding("cannot tell", reason, range(self._low + 1, self._high + 1))

    def _finding(self, outcome: OrderedOutcome, reason: str, suspects: range = range(0)) -> OrderedFinding:
        first_bad = self._high if self._answers.get(self._high) is Answer.BAD else None
        return OrderedFinding(outcome, reason, suspects, len(self._answers), self._low, first_bad)
