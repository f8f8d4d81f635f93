"""Search between two ends, which differ in packages and variables, or in the entries of a list."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ipexperf import lock as locks
from ipexperf.errors import UsageError
from ipexperf.judge import bisection, requirements
from ipexperf.judge.bisection import Answer, Candidate, Change, Search, SearchResult
from ipexperf.lock import Lock
from ipexperf.tools.bisect.answers import Measured
from ipexperf.tools.bisect.laboratory import Laboratory
from ipexperf.tools.bisect.software import End, Locked, Say, Software

MOST_NAMED = 4
"""From this many changes on, a candidate is described by their number, not their names."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ends:
    """Both ends of a search, and what lies between them."""

    names: tuple[str, str]
    """Both ends in the user's words."""
    python: str
    """The interpreter of the good end, under which the case is planned."""
    changes: Sequence[Change]
    software: Callable[[Candidate], Software]
    needs: Mapping[Change, Candidate] | None = None
    """What must be taken with each change. None: they follow one another, as versions and commits do."""

    @property
    def bad(self) -> Candidate:
        return frozenset(self.changes)

    def suspected(self, suspects: Candidate) -> list[str]:
        if self.needs is not None:
            return sorted(change.name for change in suspects)
        return [bisection.described(change) for change in self.changes if change in suspects]

    def words(self, candidate: Candidate) -> str:
        if self.needs is None:
            return bisection.described(self.changes[len(candidate) - 1])
        few = len(candidate) < MOST_NAMED
        return f"the good end with {bisection.listed(candidate) if few else f'{len(candidate)} changes'}"


def of_environments(good: End, bad: End, names: tuple[str, str]) -> Ends:
    """Two ends whose packages and variables differ. Their installed packages say which must be taken together."""
    changes = changes_between(good.lock, bad.lock)
    of_good, of_bad = (
        {package.name: (package.version, package.requires) for package in end.inventory.packages} for end in (good, bad)
    )
    needs = requirements.needs(changes, of_good, of_bad, ".".join(locks.series(good.lock.python)))
    return Ends(names, good.python, changes, lambda candidate: Locked(mixed(good.lock, bad.lock, candidate)), needs)


def of_list(entries: Sequence[Software], changes: Sequence[Change], names: tuple[str, str], good: End) -> Ends:
    """An ordered list from the good end to the bad one, with the change that made each entry of the one before."""
    return Ends(names, good.python, changes[1:], lambda candidate: entries[len(candidate)])


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


def find(ends: Ends, laboratory: Laboratory, say: Say) -> tuple[SearchResult, dict[Candidate, Measured]]:
    """Measure the candidates that the search asks for, the bad end first. Return what it found, and their answers."""
    answers: dict[Candidate, Measured] = {}
    questions = Search(ends.changes, ends.needs).run()
    try:
        question = next(questions)
        while True:
            say(f"question {len(answers) + 1}, of about {bisection.most(len(ends.changes))}: {ends.words(question)}")
            measure = laboratory.timed if answers else laboratory.bad_end
            answer = answers[question] = measure(ends.software(question))
            say(f"  {answer.answer.value}: {answer.reason}")
            question = questions.send(answer.answer)
    except StopIteration as end:
        finding: SearchResult = end.value
    if (bad := answers.get(ends.bad)) is not None:
        if bad.answer is Answer.SKIP:
            finding = dataclasses.replace(finding, reason=f"{finding.reason}: {bad.reason}")
        if bad.answer is Answer.GOOD and bad.ratio and bad.ratio.hi and bad.ratio.hi < 1:
            reason = "the bad end is quicker than the good end: are they exchanged?"
            finding = dataclasses.replace(finding, reason=reason)
    return finding, answers
