"""What is searched between two environments: which of their packages and variables matters."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ipexperf import lock as locks
from ipexperf.bisect.search import Conclusion
from ipexperf.bisect.software import End, Locked
from ipexperf.errors import UsageError
from ipexperf.judge import bisection
from ipexperf.judge.bisection import Answer, Candidate, Change, Finding
from ipexperf.judge.requirements import Mixes
from ipexperf.lock import Lock

if TYPE_CHECKING:
    from ipexperf.bisect.software import Software

MOST_NAMED = 4
"""Candidates of more changes are told by their number."""
T = TypeVar("T")


def changes_between(good: Lock, bad: Lock) -> list[Change]:
    """The changes that can be taken one by one: packages and variables."""
    if locks.series(good.python) != locks.series(bad.python):
        raise UsageError(
            f"the good end has Python {good.python} and the bad end {bad.python}: packages of both cannot be mixed"
        )
    rows = locks.differences(good, bad)
    return [Change(one.kind, one.name, one.old, one.new) for one in rows if one.kind in ("package", "variable")]


def mixed(good: Lock, bad: Lock, candidate: Candidate) -> Lock:
    """The good end with the changes of a candidate."""
    packages = {one.name: one for one in good.packages}
    theirs = {one.name: one for one in bad.packages}
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
class MixSearch:
    """The changes between two ends, each of which may be taken or not."""

    changes: Sequence[Change]
    fits: Callable[[Candidate], bool]
    ties: Mapping[Change, Sequence[Change]]
    software_of: Callable[[Candidate], Software]

    @classmethod
    def between(cls, good: End, bad: End) -> MixSearch:
        """The search between two ends, whose installed packages say what fits together."""
        changes = changes_between(good.lock, bad.lock)
        of_good, of_bad = (
            {one.name: (one.version, one.requires) for one in side.inventory.packages} for side in (good, bad)
        )
        mixes = Mixes(of_good, of_bad, ".".join(locks.series(good.lock.python)))
        return cls(changes, mixes.fits, mixes.ties(), lambda one: Locked(mixed(good.lock, bad.lock, one)))

    @property
    def whole(self) -> Candidate | None:
        return frozenset(self.changes) or None

    @property
    def differences(self) -> int:
        return len(self.changes)

    def ask(self) -> Generator[Candidate, Answer, Conclusion[Candidate]]:
        finding = yield from bisection.search(self.changes, self.fits, self.ties)
        return self._conclusion(finding)

    def left(self, answers: Sequence[Answer]) -> int:
        return bisection.questions_left(self.changes, self.fits, answers, self.ties)

    def software(self, question: Candidate) -> Software:
        return self.software_of(question)

    def words(self, question: Candidate) -> str:
        few = len(question) < MOST_NAMED
        return f"the good end with {bisection.listed(question) if few else f'{len(question)} changes'}"

    def _conclusion(self, finding: Finding) -> Conclusion[Candidate]:
        culprits = tuple(tuple(sorted(one, key=str)) for one in finding.culprits)
        return Conclusion(
            finding.outcome,
            finding.reason,
            culprits,
            tuple(sorted(one.name for one in finding.suspects)),
            finding.proof,
            frozenset[Change]().union(*(one for one, answer in finding.proof if answer is Answer.BAD)),
            finding.last_good,
            finding.first_bad,
        )
