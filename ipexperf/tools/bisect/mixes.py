"""Search the packages and variables that differ between two environments for those that make the case slower."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ipexperf import lock as locks
from ipexperf.errors import UsageError
from ipexperf.judge import bisection
from ipexperf.judge.bisection import Answer, Candidate, Change, SearchResult
from ipexperf.judge.requirements import Mixes
from ipexperf.lock import Lock
from ipexperf.tools.bisect.search import Conclusion
from ipexperf.tools.bisect.software import End, Locked

if TYPE_CHECKING:
    from ipexperf.tools.bisect.software import Software

MOST_NAMED = 4
"""From this many changes on, a candidate is described by their number, not their names."""
T = TypeVar("T")


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
class MixSearch:
    """A search over sets of changes between two ends: each change may be applied or not."""

    changes: Sequence[Change]
    fits: Callable[[Candidate], bool]
    ties: Mapping[Change, Sequence[Change]]
    software_of: Callable[[Candidate], Software]

    @classmethod
    def between(cls, good: End, bad: End) -> MixSearch:
        """Make the search between two ends. Their installed packages say which versions fit together."""
        changes = changes_between(good.lock, bad.lock)
        of_good, of_bad = (
            {package.name: (package.version, package.requires) for package in end.inventory.packages}
            for end in (good, bad)
        )
        mixes = Mixes(of_good, of_bad, ".".join(locks.series(good.lock.python)))
        return cls(changes, mixes.fits, mixes.ties(), lambda candidate: Locked(mixed(good.lock, bad.lock, candidate)))

    @property
    def whole(self) -> Candidate | None:
        return frozenset(self.changes) or None

    @property
    def differences(self) -> int:
        return len(self.changes)

    def search(self) -> bisection.Search:
        return bisection.Search(self.changes, self.fits, self.ties)

    def software(self, question: Candidate) -> Software:
        return self.software_of(question)

    def words(self, question: Candidate) -> str:
        few = len(question) < MOST_NAMED
        return f"the good end with {bisection.listed(question) if few else f'{len(question)} changes'}"

    def conclusion(self, finding: SearchResult) -> Conclusion[Candidate]:
        culprits = tuple(tuple(sorted(culprit, key=str)) for culprit in finding.culprits)
        return Conclusion(
            finding.outcome,
            finding.reason,
            culprits,
            tuple(sorted(suspect.name for suspect in finding.suspects)),
            finding.proof,
            frozenset[Change]().union(*(candidate for candidate, answer in finding.proof if answer is Answer.BAD)),
            finding.last_good,
            finding.first_bad,
        )
