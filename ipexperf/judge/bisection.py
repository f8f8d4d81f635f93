"""Find which of the changes between a good and a bad end make a case slower, with few questions.

A question is a candidate: the good end with some changes of the bad end. `Search` takes any set of changes, and halves
the suspects between a candidate that was good and one that was bad. It assumes that a change does not undo the harm of
another: whatever contains a bad candidate is bad. An answer that breaks this assumption ends the search without a name.
`OrderedSearch` is for changes that follow one another, such as versions or commits: each needs those before it.

Nothing is measured here. A search is a generator: it yields a candidate and is sent its answer. The same changes and
answers give the same questions, so that an interrupted search is taken up again by sending the recorded answers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, TypeAlias, TypeVar

from ipexperf.case import Case
from ipexperf.judge.ratios import Ratio
from ipexperf.judge.splits import Splits

MAX_CULPRITS = 3
"""Independent culprits that are looked for. Each costs a search of its own."""
MAX_TOGETHER = 3
"""Changes that are slow only together. A larger set is more likely to be the trace of a wrong answer."""
MAX_UNSURE = 2
"""Unsure answers before the search gives up. An unsure answer is the most expensive one: it took every measurement."""
MAX_TRIES = 8
"""Candidates without an answer in a row, for one split or one proof."""

Outcome: TypeAlias = Literal["culprit", "together", "several", "inseparable", "alike", "cannot tell"]


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

    - culprit: one change, proven: it is enough, and without it the bad end is good. Of an ordered list: the first slow
      entry, before which the list is good.
    - together: one set of changes that is slow, and no part of it is.
    - several: each of these sets is enough.
    - inseparable: a culprit is in each of these sets, and no candidate that works could separate their changes.
      Of an ordered list: all entries between the last good and the first bad one are skipped.
    - alike: the bad end is not bad.
    - cannot tell: `suspects` are the changes that remain.

    `last_good` and `first_bad` are the measured candidates that differ least, the good one within the bad one. `proof`
    is what shows the culprits: the least that fits with each of them is bad, the most that fits without them is good.
    """

    outcome: Outcome
    reason: str
    culprits: tuple[Candidate, ...] = ()
    suspects: Candidate = frozenset()
    questions: int = 0
    last_good: Candidate | None = None
    first_bad: Candidate | None = None
    proof: tuple[tuple[Candidate, Answer], ...] = ()


@dataclass(frozen=True, slots=True)
class BisectionRecord:
    """The end of one search, as it is printed, recorded and drawn. `outcome` is one of those of `SearchResult`."""

    case: Case
    good: str
    """The good end in the user's words."""
    bad: str
    outcome: str
    reason: str
    culprits: tuple[tuple[Change, ...], ...] = ()
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
        return {**dataclasses.asdict(self), "case": self.case.to_json()}


T = TypeVar("T")
Asking: TypeAlias = Generator[Candidate, Answer, T]


def listed(changes: Iterable[Change]) -> str:
    """The names of changes in a sentence, sorted."""
    names = sorted(change.name for change in changes)
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def described(change: Change) -> str:
    """An entry of an ordered list in words: a commit or a version."""
    return f"commit {change.name}: {change.bad}" if change.kind == "commit" else f"{change.name} {change.bad}"


class _CannotTellError(Exception):
    """Ends a search without a name."""

    def __init__(self, reason: str, suspects: Candidate) -> None:
        super().__init__(reason)
        self.reason = reason
        self.suspects = suspects


@dataclass(frozen=True, slots=True)
class _Cause:
    """A set that is enough to be bad.

    Each part was shown to matter, and its changes were not separated. `extra` came along in the proof, although
    nothing is known to tie it to the parts. `proof` is the candidate that was bad.
    """

    parts: tuple[Candidate, ...]
    extra: Candidate
    proof: Candidate

    @property
    def named(self) -> Candidate:
        return self.extra.union(*self.parts)

    @property
    def exact(self) -> bool:
        return not self.extra and all(len(part) == 1 for part in self.parts)


class Search:
    """One search: the answers so far, and what is still to be asked."""

    def __init__(
        self,
        changes: Sequence[Change],
        fits: Callable[[Candidate], bool],
        ties: Mapping[Change, Iterable[Change]] | None = None,
    ) -> None:
        """Only candidates that fit are asked about. Both ends fit by definition.

        `ties` says of a change which others must be taken with it. They only help to find candidates that fit: where
        `fits` is the requirements of packages, give the ties of packages too. Give the changes in the same order when a
        search is taken up again.
        """
        self._everything: Candidate = frozenset(changes)
        self._splits = Splits(changes, fits, ties or {})
        self._answers: dict[Candidate, Answer] = {}
        self._unsure = 0
        self._suspects = self._everything
        self._loose: Candidate = frozenset()
        """Left out of the bad end for the proof, although nothing is known to tie them to the culprits."""
        self._span = len(self._everything)
        self._proofs = 3

    def left(self) -> int:
        """How many questions are left at most, the pending one included, if nothing surprises.

        One for each halving, and the proofs. A skipped or unsure candidate, a culprit that is slow only with another
        and a second culprit are surprises: each adds questions.
        """
        return self._proofs + (math.ceil(math.log2(self._span)) if self._span > 1 else 0)

    def run(self) -> Asking[SearchResult]:
        """Yield candidates, be sent their answers, and return the finding. No candidate is yielded twice."""
        if not self._everything:
            return SearchResult("alike", "nothing differs between both ends")
        try:
            return (yield from self._find())
        except _CannotTellError as end:
            return self._finding("cannot tell", end.reason, suspects=end.suspects)

    def _find(self) -> Asking[SearchResult]:
        answer = yield from self._ask(self._everything)
        if answer is not Answer.BAD:
            outcome, reason = NOT_BAD[answer]
            suspects = self._everything if outcome == "cannot tell" else frozenset[Change]()
            return self._finding(outcome, reason, suspects=suspects)
        causes = yield from self._causes()
        yield from self._confirm(causes)
        return self._finding_of(causes)

    def _causes(self) -> Asking[list[_Cause]]:
        """All sets of changes that are enough to be bad.

        Every way to leave out one part of each known cause must make the bad end good. Where it does not,
        what is left contains another cause.
        """
        causes: list[_Cause] = []
        to_leave_out: list[Candidate] = [frozenset()]
        while to_leave_out:
            removed = to_leave_out.pop(0)
            rest = self._splits.largest_without(removed, self._everything)
            cause = next((each for each in causes if each.proof <= rest), None)
            if cause is None:
                self._span, self._proofs = 1, 1 + len(to_leave_out)
                bad = yield from self._bad_without(removed, causes)
                if bad is None:
                    continue
                cause = yield from self._cause(bad, len(to_leave_out))
                if len(causes) == MAX_CULPRITS:
                    text = f"there are more than {MAX_CULPRITS} independent culprits"
                    raise _CannotTellError(text, cause.named.union(*(each.named for each in causes)))
                causes.append(cause)
            for part in cause.parts:
                if removed | part not in to_leave_out:
                    to_leave_out.append(removed | part)
        return causes

    def _bad_without(self, removed: Candidate, causes: list[_Cause]) -> Asking[Candidate | None]:
        """A bad candidate without these changes, or None if the bad end without them is good."""
        suspects = removed.union(*(cause.named for cause in causes))
        for candidate in self._splits.without(removed, self._everything):
            answer = self._implied(candidate)
            if answer is None:
                self._suspects = suspects
                answer = yield from self._ask(candidate)
            if answer is Answer.UNSURE:
                text = f"whether the bad end is good without {listed(removed)} is lost in the noise"
                raise _CannotTellError(text, suspects)
            if answer is Answer.GOOD:
                self._loose |= self._everything - candidate - self._splits.needing(removed)
                return None
            if answer is Answer.BAD:
                return candidate
        raise _CannotTellError(f"the bad end could not be measured without {listed(removed)}", suspects)

    def _cause(self, high: Candidate, proofs: int) -> Asking[_Cause]:
        """A smallest set within a bad candidate that is enough.

        Narrowing ends at a part that turns a good candidate bad. If the part alone is good, another part of the same
        cause is in what was good with it.
        """
        low: Candidate = frozenset()
        parts: list[Candidate] = []
        while True:
            if len(parts) == MAX_TOGETHER:
                text = f"{listed(frozenset().union(*parts))} are not enough together"
                raise _CannotTellError(text, high)
            self._proofs = proofs + 2 + len(parts)
            low, high = yield from self._narrow(low, high, frozenset().union(*parts))
            parts.append(high - low)
            required: Candidate = frozenset().union(*parts)
            self._span, self._proofs, self._suspects = 1, proofs + 1 + len(parts), required
            low, proof = yield from self._enough(required, high)
            if low == proof:
                return _Cause(tuple(parts), proof - self._splits.needed_by(required), proof)

    def _enough(self, required: Candidate, high: Candidate) -> Asking[tuple[Candidate, Candidate]]:
        """Ask whether the smallest candidate with the required changes is bad. Return a good and a bad candidate.

        If it is bad, the required changes are enough: it is returned as both.
        """
        for candidate in self._splits.containing(required, high):
            answer = self._implied(candidate)
            if answer is None:
                answer = yield from self._ask(candidate)
            if answer is Answer.UNSURE:
                raise _CannotTellError(f"whether {listed(required)} is enough is lost in the noise", high)
            if answer is Answer.BAD:
                return candidate, candidate
            if answer is Answer.GOOD:
                return candidate, high
        return high, high

    def _narrow(self, low: Candidate, high: Candidate, parts: Candidate) -> Asking[tuple[Candidate, Candidate]]:
        """Ask for candidates between a good and a bad one until none is left. Return the nearest good and bad pair."""
        tries = 0
        unsure: list[Candidate] = []
        while tries < MAX_TRIES:
            candidate = self._splits.best(low, high, self._unanswered())
            if candidate is None:
                break
            self._span, self._suspects = len(high - low), parts | (high - low)
            answer = self._implied(candidate)
            if answer is None:
                answer = yield from self._ask(candidate)
            if answer is Answer.GOOD:
                low, tries = candidate, 0
            elif answer is Answer.BAD:
                high, tries = candidate, 0
            else:
                tries += 1
                unsure += [candidate] if answer is Answer.UNSURE else []
        if len(high - low) > 1 and any(low < candidate < high for candidate in unsure):
            text = f"which of {listed(high - low)} matters is lost in the noise"
            raise _CannotTellError(text, parts | (high - low))
        return low, high

    def _confirm(self, causes: list[_Cause]) -> Asking[None]:
        """Ask questions whose answers are implied already, so that no claim about several changes rests on one answer.

        Each part of a cause must be needed, and each of several causes must be bad without the others. An answer that
        says otherwise contradicts an earlier one and ends the search. A skipped question changes nothing.
        """
        parts = [self._splits.largest_without(part, cause.proof) for cause in causes for part in cause.parts]
        yield from self._ask_also(causes, parts)
        alone = [candidate for cause in causes for candidate in self._alone(cause, causes)]
        yield from self._ask_also(causes, alone)

    def _ask_also(self, causes: list[_Cause], candidates: Iterable[Candidate]) -> Asking[None]:
        questions = [question for question in dict.fromkeys(candidates) if question and question not in self._answers]
        for place, candidate in enumerate(questions):
            self._span, self._proofs = 1, len(questions) - place
            self._suspects = frozenset().union(*(cause.named for cause in causes))
            yield from self._ask(candidate)

    def _alone(self, cause: _Cause, causes: list[_Cause]) -> list[Candidate]:
        """The candidate that shows once more that the cause needs none of the other causes, unless one has shown it."""
        others = [other for other in causes if other is not cause]
        if any(self._shows_alone(candidate, cause, others) for candidate in self._answered(Answer.BAD)):
            return []
        apart = [next((part for part in other.parts if not part & cause.named), frozenset()) for other in others]
        candidate = self._splits.largest_without(frozenset[Change]().union(*apart), self._everything)
        return [candidate] if cause.proof <= candidate else []

    def _shows_alone(self, candidate: Candidate, cause: _Cause, others: list[_Cause]) -> bool:
        alone = cause.proof <= candidate and not any(other.proof <= candidate for other in others)
        return alone and candidate != cause.proof

    def _ask(self, candidate: Candidate) -> Asking[Answer]:
        answer = yield candidate
        self._answers[candidate] = answer
        if answer is Answer.UNSURE:
            self._unsure += 1
            if self._unsure > MAX_UNSURE:
                raise _CannotTellError(f"{self._unsure} answers were lost in the noise", self._suspects)
            return answer
        self._splits.note(candidate, works=answer is not Answer.SKIP)
        if self._contradicts(candidate, answer):
            text = "the answers contradict one another: a candidate is bad, and good with more changes of the bad end"
            raise _CannotTellError(text, self._everything)
        return answer

    def _contradicts(self, candidate: Candidate, answer: Answer) -> bool:
        """Whether an answer contradicts an earlier one."""
        if answer is Answer.BAD:
            return any(candidate <= good for good in self._answered(Answer.GOOD))
        return answer is Answer.GOOD and any(bad <= candidate for bad in self._answered(Answer.BAD))

    def _implied(self, candidate: Candidate) -> Answer | None:
        """The answer to a candidate, if it was asked before or follows from other answers."""
        if candidate in self._answers:
            return self._answers[candidate]
        if not candidate or any(candidate <= good for good in self._answered(Answer.GOOD)):
            return Answer.GOOD
        if any(bad <= candidate for bad in self._answered(Answer.BAD)):
            return Answer.BAD
        return None

    def _answered(self, sought: Answer) -> list[Candidate]:
        return [candidate for candidate, answer in self._answers.items() if answer is sought]

    def _unanswered(self) -> set[Candidate]:
        return {*self._answered(Answer.SKIP), *self._answered(Answer.UNSURE)}

    def _finding_of(self, causes: list[_Cause]) -> SearchResult:
        return dataclasses.replace(self._finding(*self._culprits(causes)), proof=tuple(self._proof(causes)))

    def _culprits(self, causes: list[_Cause]) -> tuple[Outcome, str, tuple[Candidate, ...]]:
        if self._loose:
            union = self._loose.union(*(cause.named for cause in causes))
            return "inseparable", _inseparable([union]), (union,)
        culprits = tuple(cause.named for cause in causes)
        if not all(cause.exact for cause in causes):
            return "inseparable", _inseparable(culprits), culprits
        if len(culprits) > 1:
            names = ", ".join(listed(culprit) + (" together" if len(culprit) > 1 else "") for culprit in culprits)
            return "several", f"each of these is enough to be slower: {names}", culprits
        names = listed(culprits[0])
        if len(culprits[0]) > 1:
            return "together", f"{names} are slower only together", culprits
        needed = causes[0].proof - culprits[0]
        others = f" with {listed(needed)}" if len(needed) == 1 else f" with {len(needed)} other changes"
        enough = f"is enough,{others} that it needs," if needed else "is enough,"
        return "culprit", f"{names} {enough} and without it the bad end is not slower", culprits

    def _proof(self, causes: list[_Cause]) -> Iterator[tuple[Candidate, Answer]]:
        without = self._splits.largest_without(frozenset().union(*(cause.named for cause in causes)), self._everything)
        proof = [*((cause.proof, Answer.BAD) for cause in causes), (without, Answer.GOOD)]
        return (step for step in proof if step[0] and step[0] != self._everything)

    def _finding(
        self, outcome: Outcome, reason: str, culprits: tuple[Candidate, ...] = (), suspects: Candidate = frozenset()
    ) -> SearchResult:
        last_good, first_bad = self._neighbours()
        return SearchResult(outcome, reason, culprits, suspects, len(self._answers), last_good, first_bad)

    def _neighbours(self) -> tuple[Candidate | None, Candidate | None]:
        good = [frozenset[Change](), *self._answered(Answer.GOOD)]
        pairs = [(low, high) for high in self._answered(Answer.BAD) for low in good if low < high]
        return min(pairs, key=lambda pair: (len(pair[1] - pair[0]), len(pair[1])), default=(None, None))


def _inseparable(culprits: Iterable[Candidate]) -> str:
    sets = ", and ".join(listed(culprit) for culprit in culprits)
    return f"{sets}: enough, and without it the bad end is not slower, but its parts could not be measured apart"


class OrderedSearch:
    """A search for the first slow entry of an ordered list. A candidate has all entries up to one of them."""

    def __init__(self, changes: Sequence[Change]) -> None:
        """`changes` are the entries after the good end, in their order."""
        self._changes = tuple(changes)
        self._answers: dict[int, Answer] = {}
        """By the number of entries that a candidate has."""
        self._low = 0
        self._high = self._end = len(self._changes)
        self._to_confirm = 2
        self._confirming = False

    def left(self) -> int:
        """How many questions are left at most, the pending one included, if none is skipped."""
        if self._confirming:
            return self._to_confirm
        span = self._high - self._low
        return math.ceil(math.log2(span)) + self._to_confirm + (not self._answers)

    def run(self) -> Asking[SearchResult]:
        """Yield candidates, be sent their answers, and return the finding. No candidate is yielded twice.

        The last is asked first. At last the next entry on either side of the finding is asked too. Then one wrong
        answer moves the finding by one entry at most: a wrong answer about the first slow entry itself leaves no trace
        in the others.
        """
        if not self._changes:
            return SearchResult("alike", "there is only one entry")
        answer = yield from self._ask(self._end)
        if answer is not Answer.BAD:
            return self._finding(*NOT_BAD[answer])
        yield from self._narrow()
        unsure = [at for at in range(self._low + 1, self._high) if self._answers.get(at) is Answer.UNSURE]
        if unsure:
            return self._finding("cannot tell", f"{len(unsure)} of the entries between are lost in the noise")
        if not (yield from self._confirmed()):
            self._low, self._high = 0, self._end
            text = "the answers contradict one another: an entry is bad, and a later one good"
            return self._finding("cannot tell", text)
        if self._high - self._low > 1:
            text = "one of these is the first that is slower: what lies between could not be measured"
            return self._finding("inseparable", text)
        first = described(self._changes[self._low])
        return self._finding("culprit", f"{first} is the first that is slower: the one before it is not")

    def _narrow(self) -> Asking[None]:
        """Halve what is between the last good and the first bad entry, past those without an answer."""
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

    def _confirmed(self) -> Asking[bool]:
        """Ask for the next entry on either side. Return whether no answer contradicts the finding."""
        self._confirming = True
        beside = [(self._low - 1, Answer.BAD), (self._high + 1, Answer.GOOD)]
        beside = [(at, against) for at, against in beside if 0 < at < self._end and at not in self._answers]
        self._to_confirm = len(beside)
        for at, against in beside:
            if (yield from self._ask(at)) is against:
                return False
            self._to_confirm -= 1
        return True

    def _ask(self, at: int) -> Asking[Answer]:
        answer = yield self._up_to(at)
        self._answers[at] = answer
        return answer

    def _up_to(self, at: int) -> Candidate:
        return frozenset(self._changes[:at])

    def _finding(self, outcome: Outcome, reason: str) -> SearchResult:
        """The finding: the first slow entry is one of those after the last good one, up to the first bad one."""
        asked, between = len(self._answers), frozenset(self._changes[self._low : self._high])
        last_good, first_bad = self._up_to(self._low), self._up_to(self._high)
        if self._answers.get(self._high) is not Answer.BAD:
            suspects = between if outcome == "cannot tell" else frozenset[Change]()
            return SearchResult(outcome, reason, suspects=suspects, questions=asked)
        if outcome == "cannot tell":
            return SearchResult(outcome, reason, (), between, asked, last_good, first_bad)
        proof = [(first_bad, Answer.BAD)]
        if last_good:  # the good end is good by definition
            proof.append((last_good, Answer.GOOD))
        return SearchResult(outcome, reason, (between,), frozenset(), asked, last_good, first_bad, tuple(proof))
