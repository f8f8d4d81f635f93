"""Find which of the changes between a good and a bad end makes a case slower, with few questions.

The changes are in an order: versions and commits follow one another, packages come after those that they need. A
question is a candidate: the good end with all changes up to one of them. The search halves what is between a candidate
that was good and one that was bad. It assumes that a change does not undo the harm of another: whatever contains a bad
candidate is bad. At the end it asks more, so that no culprit rests on one answer: for the neighbours of a version or
commit, for a package alone, and for the bad end without it.

Nothing is measured here. A search is a generator: it yields a candidate and is sent its answer. The same changes and
answers give the same questions, so that an interrupted search is taken up again by sending the recorded answers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Any, Literal, TypeAlias, TypeVar

from ipexperf.case import Case
from ipexperf.ratio import Ratio, numbers
from ipexperf.sentences import together

MAX_UNSURE = 2
"""Unsure answers before the search gives up. An unsure answer is the most expensive one: it took every measurement."""

Outcome: TypeAlias = Literal["culprit", "not alone", "inseparable", "alike", "cannot tell"]


class Answer(Enum):
    """The answer to the question whether a candidate is slow."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"
    """The candidate cannot be installed or does not start."""
    UNSURE = "unsure"
    """The noise is larger than the change."""


NOT_BAD: Mapping[Answer, tuple[Outcome, str]] = {
    Answer.GOOD: ("alike", "both ends are alike: the bad end is not slower than the good end"),
    Answer.SKIP: ("cannot tell", "the bad end could not be measured"),
    Answer.UNSURE: ("cannot tell", "the noise is larger than the difference between both ends"),
}
"""How a search ends that the bad end does not begin."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that differs between the ends. `kind` is a word such as package, variable or commit.

    `good` and `bad` are what each end has, or None where it is absent.
    """

    kind: str
    name: str
    good: str | None
    bad: str | None


Candidate: TypeAlias = frozenset[Change]
"""Changes that are taken from the bad end. The empty set is the good end."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The end of a search.

    - culprit: one change. A package is enough, and without it the bad end is good; a version or commit is the first
      that is slow.
    - not alone: one of these two is not so.
    - inseparable: a culprit is among these, and no candidate that works could separate them.
    - alike: the bad end is not bad.
    - cannot tell: `suspects` are the changes that remain.

    `last_good` and `first_bad` are the measured candidates on either side. `shown` is the one
    that shows the culprits: they alone, with what they need, or the first bad entry of a list.
    """

    outcome: Outcome
    reason: str
    culprits: Candidate = frozenset()
    suspects: Candidate = frozenset()
    last_good: Candidate | None = None
    first_bad: Candidate | None = None
    shown: Candidate | None = None


@dataclass(frozen=True, slots=True)
class BisectionRecord:
    """The end of one search, as it is printed, recorded and drawn. `outcome` is one of those of `SearchResult`."""

    case: Case
    good: str
    """The good end in the user's words."""
    bad: str
    outcome: str
    reason: str
    culprits: tuple[Change, ...] = ()
    suspects: tuple[str, ...] = ()
    """The names of the changes that are left if the search named no culprit."""
    ends: Ratio | None = None
    """The step time of the bad end over that of the good end."""
    culprit: Ratio | None = None
    """The same for the good end with the culprits alone, or for the first bad one of a list."""
    ran: tuple[str, ...] = ()
    """The differences in structure from the good end."""
    last_good: str = ""
    """The text of its lock, or empty if it has none."""
    first_bad: str = ""
    measured: int = 0
    """How many candidates were measured, now or in an earlier try."""
    differences: int = 0
    machine_key: str = ""
    """Empty if nothing was measured."""
    started_at: str = ""
    finished_at: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        ratios = {"ends": self.ends and numbers(self.ends), "culprit": self.culprit and numbers(self.culprit)}
        return {**dataclasses.asdict(self), **ratios, "case": self.case.to_json()}


T = TypeVar("T")
Asking: TypeAlias = Generator[Candidate, Answer, T]


def listed(changes: Iterable[Change]) -> str:
    """The names of changes in a sentence, sorted."""
    return together(sorted(change.name for change in changes))


def described(change: Change) -> str:
    """An entry of an ordered list in words: a commit or a version."""
    return f"commit {change.name}: {change.bad}" if change.kind == "commit" else f"{change.name} {change.bad}"


def most(changes: int) -> int:
    """How many questions a search asks at most, if nothing surprises: the bad end, the halvings, and two to confirm."""
    return math.ceil(math.log2(max(changes, 1))) + 3


class Search:
    """A search for the first slow step of an ordered list. A candidate has all steps up to one of them."""

    def __init__(self, changes: Sequence[Change], needs: Mapping[Change, Candidate] | None = None) -> None:
        """`changes` are those after the good end, in their order, where each needs those before it.

        Packages need not: then `needs` says of each what must be taken with it, itself included, over any number of
        requirements. At the end the culprit is measured alone, and reverted alone.
        """
        self._steps = [frozenset({change}) for change in changes] if needs is None else _steps(changes, needs)
        self._needs = needs
        self._answers: dict[int, Answer] = {}
        """By the number of steps that a candidate has."""
        self._low = 0
        self._high = self._end = len(self._steps)

    def run(self) -> Asking[SearchResult]:
        """Yield candidates, be sent their answers, and return the finding. No candidate is yielded twice.

        The last is asked first, and at last what confirms the finding: an answer may be wrong.
        """
        if not self._steps:
            return SearchResult("alike", "nothing differs between both ends")
        answer = yield from self._ask(self._end)
        if answer is not Answer.BAD:
            return self._finding(*NOT_BAD[answer])
        yield from self._narrow()
        unsure = [at for at in range(self._low + 1, self._high) if self._answers.get(at) is Answer.UNSURE]
        if unsure:
            return self._finding("cannot tell", f"{len(unsure)} of the candidates between are lost in the noise")
        if self._needs is not None:
            return (yield from self._alone(self._needs))
        if not (yield from self._confirmed()):
            self._low, self._high = 0, self._end
            text = "the answers contradict one another: an entry is bad, and a later one good"
            return self._finding("cannot tell", text)
        if self._high - self._low > 1:
            text = "one of these is the first that is slower: what lies between could not be measured"
            return self._finding("inseparable", text)
        (first,) = self._between()
        return self._finding("culprit", f"{described(first)} is the first that is slower: the one before it is not")

    def _narrow(self) -> Asking[None]:
        """Halve what is between the last good and the first bad candidate, past those without an answer."""
        unsure = 0
        while unsure <= MAX_UNSURE:
            unasked = [at for at in range(self._low + 1, self._high) if at not in self._answers]
            if not unasked:
                return
            middle = (self._low + self._high) / 2
            at = min(unasked, key=lambda at: abs(at - middle))
            answer = yield from self._ask(at)
            if answer is Answer.GOOD:
                self._low = at
            elif answer is Answer.BAD:
                self._high = at
            unsure += answer is Answer.UNSURE

    def _alone(self, needs: Mapping[Change, Candidate]) -> Asking[SearchResult]:
        """Ask for the culprit alone with what it needs, and for the bad end without it and what needs it."""
        culprit = self._between()
        alone = frozenset[Change]().union(*(needs[change] for change in culprit))
        rest = frozenset(change for change in self._up_to(self._end) if not needs[change] & culprit)
        known = {self._up_to(self._low): Answer.GOOD, self._up_to(self._high): Answer.BAD}
        for candidate in (alone, rest):
            if candidate not in known:
                known[candidate] = yield candidate
        return self._finding(*_judged(culprit, alone - culprit, known[alone], known[rest]), alone)

    def _confirmed(self) -> Asking[bool]:
        """Ask for the next candidate on either side. Return whether no answer contradicts the finding.

        So one wrong answer moves the finding by one step at most: a wrong answer about the first slow step itself
        leaves no trace in the others.
        """
        beside = [(self._low - 1, Answer.BAD), (self._high + 1, Answer.GOOD)]
        for at, against in beside:
            if 0 < at < self._end and at not in self._answers and (yield from self._ask(at)) is against:
                return False
        return True

    def _ask(self, at: int) -> Asking[Answer]:
        answer = yield self._up_to(at)
        self._answers[at] = answer
        return answer

    def _up_to(self, at: int) -> Candidate:
        return frozenset().union(*self._steps[:at])

    def _between(self) -> Candidate:
        return frozenset().union(*self._steps[self._low : self._high])

    def _finding(self, outcome: Outcome, reason: str, shown: Candidate | None = None) -> SearchResult:
        """The finding: the culprit is in a step after the last good candidate, up to the first bad one."""
        between = self._between()
        if self._answers.get(self._high) is not Answer.BAD:
            suspects = between if outcome == "cannot tell" else frozenset[Change]()
            return SearchResult(outcome, reason, suspects=suspects)
        last_good, first_bad = self._up_to(self._low), self._up_to(self._high)
        if outcome == "cannot tell":
            return SearchResult(outcome, reason, frozenset(), between, last_good, first_bad)
        return SearchResult(outcome, reason, between, frozenset(), last_good, first_bad, shown or first_bad)


def _judged(culprit: Candidate, needed: Candidate, alone: Answer, without: Answer) -> tuple[Outcome, str]:
    """What the answers to a culprit alone, and to the bad end without it, say of it."""
    names = listed(culprit)
    if Answer.SKIP in (alone, without):
        what = f"{names} could not be measured alone"
        return "cannot tell", what if alone is Answer.SKIP else f"the bad end could not be measured without {names}"
    if Answer.UNSURE in (alone, without):
        what = f"{names} is enough" if alone is Answer.UNSURE else f"the bad end is good without {names}"
        return "cannot tell", f"whether {what} is lost in the noise"
    if alone is Answer.BAD and without is Answer.BAD:
        return "not alone", f"{names} is enough, but without it the bad end is slower too"
    if alone is Answer.GOOD and without is Answer.GOOD:
        return "not alone", f"without {names} the bad end is not slower, but it is not enough: others take part"
    if alone is Answer.GOOD:
        return "cannot tell", f"{names} is not enough, and without it the bad end is slower: not this one alone"
    if len(culprit) > 1:
        text = f"{names}: enough, and without it the bad end is not slower, but its parts could not be measured apart"
        return "inseparable", text
    others = f" with {listed(needed)}" if len(needed) == 1 else f" with {len(needed)} other changes"
    enough = f"is enough,{others} that it needs," if needed else "is enough,"
    return "culprit", f"{names} {enough} and without it the bad end is not slower"


def _steps(changes: Sequence[Change], needs: Mapping[Change, Candidate]) -> list[Candidate]:
    """The changes in an order of which each beginning has all that it needs. What needs one another is one step."""
    place = {change: number for number, change in enumerate(changes)}

    def closure(change: Change) -> tuple[int, list[int]]:
        return len(needs[change]), sorted(place[other] for other in needs[change])

    return [frozenset(step) for _, step in groupby(sorted(changes, key=closure), closure)]
