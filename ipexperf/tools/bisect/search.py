"""Search between two ends until the clock confirms a finding.

The ends differ in packages and variables, or in the entries of a list. They name the software of each question.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ipexperf import lock as locks
from ipexperf.errors import UsageError
from ipexperf.judge import bisection
from ipexperf.judge.bisection import Answer, Candidate, Change, Search, SearchResult
from ipexperf.judge.requirements import Mixes
from ipexperf.lock import Lock
from ipexperf.report import units
from ipexperf.tools.bisect.answers import Measured
from ipexperf.tools.bisect.software import End, Locked, Say, Software

if TYPE_CHECKING:
    from ipexperf.tools.bisect.laboratory import Laboratory

BY_KERNELS = "by which kernels run alone, because the clock cannot tell what they cost"
MOST_NAMED = 4
"""From this many changes on, a candidate is described by their number, not their names."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ends:
    """Both ends of a search, and what lies between them."""

    good: Software
    bad: Software
    """Only names it: what is measured is the candidate with all changes."""
    names: tuple[str, str]
    """Both ends in the user's words."""
    python: str
    """The interpreter of the good end, under which the case is planned."""
    changes: Sequence[Change]
    search: Callable[[], Search]
    """Begins a search."""
    software: Callable[[Candidate], Software]
    words: Callable[[Candidate], str]
    """A candidate in words, for people."""
    suspected: Callable[[Candidate], list[str]]
    """The names of suspects."""


def of_environments(good: End, bad: End, names: tuple[str, str]) -> Ends:
    """Two ends whose packages and variables differ. Their installed packages say which must be taken together."""
    changes = changes_between(good.lock, bad.lock)
    of_good, of_bad = (
        {package.name: (package.version, package.requires) for package in end.inventory.packages} for end in (good, bad)
    )
    needs = Mixes(of_good, of_bad, ".".join(locks.series(good.lock.python))).needs(changes)
    return Ends(
        Locked(good.lock),
        Locked(bad.lock),
        names,
        good.python,
        changes,
        lambda: Search(changes, needs),
        lambda candidate: Locked(mixed(good.lock, bad.lock, candidate)),
        _mix_in_words,
        lambda suspects: sorted(change.name for change in suspects),
    )


def _mix_in_words(candidate: Candidate) -> str:
    few = len(candidate) < MOST_NAMED
    return f"the good end with {bisection.listed(candidate) if few else f'{len(candidate)} changes'}"


def of_list(entries: Sequence[Software], changes: Sequence[Change], names: tuple[str, str], good: End) -> Ends:
    """An ordered list from the good end to the bad one, with the change that made each entry of the one before."""
    after = changes[1:]
    return Ends(
        entries[0],
        entries[-1],
        names,
        good.python,
        after,
        lambda: Search(after),
        lambda candidate: entries[len(candidate)],
        lambda candidate: bisection.described(changes[len(candidate)]),
        lambda suspects: [bisection.described(change) for change in after if change in suspects],
    )


def changes_between(good: Lock, bad: Lock) -> list[Change]:
    """Return the changes that can be applied one by one: packages and variables."""
    if locks.series(good.python) != locks.series(bad.python):
        raise UsageError(
            f"the good end has Python {good.python} and the bad end {bad.python}: packages of both cannot be mixed"
        )
    rows = locks.differences(good, bad)
    return [Change(row.kind, row.name, row.old, row.new) for row in rows if row.kind in ("package", "variable")]


def mixed(good: Lock, bad: Lock, candidate: Candidate) -> Lock:
    """Return the lock of the good end with the changes of a candidate."""
    packages = {package.name: package for package in good.packages}
    theirs = {package.name: package for package in bad.packages}
    variables, their_variables = dict(good.variables), dict(bad.variables)
    for change in candidate:
        if change.kind == "package":
            _take(packages, theirs, change.name)
        else:
            _take(variables, their_variables, change.name)
    return dataclasses.replace(
        good,
        packages=tuple(packages[name] for name in sorted(packages)),
        variables=tuple(sorted(variables.items())),
        libraries=(),
        name="",
    )


def _take(ours: dict[str, T], theirs: dict[str, T], name: str) -> None:
    if name in theirs:
        ours[name] = theirs[name]
    else:
        ours.pop(name, None)


@dataclass(frozen=True, slots=True)
class Report:
    """A finding with the numbers that prove it."""

    finding: SearchResult
    ends: Measured | None = None
    """The numbers of the bad end against the good one."""
    culprit: Measured | None = None
    """The numbers of the culprits alone against the good end."""
    asked: int = 0
    """The number of candidates measured, now or in an earlier try."""


def find(ends: Ends, laboratory: Laboratory, say: Say, *, fingerprint: bool = True) -> Report:
    """Search until the clock confirms a finding. If the ends' fingerprints differ, these answer on the way there."""
    if not ends.changes:
        return Report(SearchResult("alike", "nothing differs between both ends"))
    return _Inquiry(ends, laboratory, say).report(fingerprint=fingerprint)


class _Inquiry:
    """The searches between two ends, with all answers so far."""

    def __init__(self, ends: Ends, laboratory: Laboratory, say: Say) -> None:
        self._ends = ends
        self._laboratory = laboratory
        self._say = say
        self._whole: Candidate = frozenset(ends.changes)
        self._answers = {self._whole: laboratory.timed(ends.software(self._whole))}

    def report(self, *, fingerprint: bool) -> Report:
        finding, whole = self._finding(fingerprint=fingerprint), self._answers[self._whole]
        if whole.answer is Answer.SKIP:
            finding = dataclasses.replace(finding, reason=f"{finding.reason}: {whole.reason}")
        culprit = self._answers.get(finding.proof[0][0]) if finding.proof else None
        return Report(finding, whole, culprit, len(self._answers))

    def _finding(self, *, fingerprint: bool) -> SearchResult:
        laboratory, whole = self._laboratory, self._answers[self._whole]
        if whole.answer is Answer.GOOD:
            finding = self._search(laboratory.timed)
            if whole.hi is None or whole.hi >= 1:
                return finding
            reason = "the bad end is quicker than the good end: are they exchanged?"
            return dataclasses.replace(finding, reason=reason)
        if whole.answer is Answer.BAD:
            whole = self._answers[self._whole] = laboratory.sized(self._ends.software(self._whole), whole)
        laboratory.judge_by(whole)
        by_kernels = fingerprint and laboratory.kernels is not None
        if not by_kernels:
            return self._search(laboratory.timed)
        if whole.answer is not Answer.BAD:
            self._say("the clock cannot tell both ends apart, but they run different kernels: these answer")
            self._answers[self._whole] = dataclasses.replace(whole, answer=Answer.BAD)
            finding = self._search(laboratory.quick)
            self._answers[self._whole] = whole
            if not finding.culprits:
                return finding
            return dataclasses.replace(finding, reason=f"{finding.reason}, {BY_KERNELS}")
        self._say("both ends run different kernels, which answer first; the clock proves what they say")
        finding = self._search(laboratory.quick)
        if finding.culprits and self._proven(finding):
            return finding
        self._say("the clock does not confirm what the kernels say: it answers all questions now")
        self._answers = {self._whole: whole}
        return self._search(laboratory.timed)

    def _search(self, measure: Callable[[Software], Measured]) -> SearchResult:
        """Answer the questions of a search until it ends."""
        search = self._ends.search()
        questions = search.run()
        number = 1
        try:
            question = next(questions)
            while True:
                if question not in self._answers:
                    left = search.left()
                    seconds = self._laboratory.seconds_each()
                    estimate = f", about {units.seconds(round(left * seconds))}" if seconds else ""
                    self._ask(f"question {number}, at most {left} left{estimate}", question, measure)
                question = questions.send(self._answers[question].answer)
                number += 1
        except StopIteration as end:
            finding: SearchResult = end.value
            return finding

    def _proven(self, finding: SearchResult) -> bool:
        """Return True if the clock gives the same answers as the kernels."""
        for question, expected in finding.proof:
            if question not in self._answers or not self._answers[question].clock:
                self._ask("the clock proves it", question, self._laboratory.timed)
            if self._answers[question].answer is not expected:
                return False
        return True

    def _ask(self, why: str, question: Candidate, measure: Callable[[Software], Measured]) -> None:
        self._say(f"{why}: {self._ends.words(question)}")
        answer = self._answers[question] = measure(self._ends.software(question))
        self._say(f"  {answer.answer.value}: {answer.reason}")
