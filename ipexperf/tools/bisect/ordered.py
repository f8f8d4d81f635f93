"""Search an ordered list of versions or commits for the first that is slow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipexperf.judge.bisection import Answer, Change
from ipexperf.judge.ordered_bisection import OrderedFinding, OrderedSearch
from ipexperf.tools.bisect.search import Conclusion

if TYPE_CHECKING:
    from ipexperf.tools.bisect.software import Software

REASONS = {
    "culprit": "is the first that is slower: the one before it is not",
    "inseparable": "one of these is the first that is slower: what lies between could not be measured",
}


@dataclass(frozen=True, slots=True)
class ListedSoftware:
    """One version or commit of the list, and how it differs from the one before."""

    software: Software
    change: Change


@dataclass(frozen=True, slots=True)
class ListSearch:
    """A search over entries ordered from the good end to the bad one."""

    entries: Sequence[ListedSoftware]

    @property
    def whole(self) -> int | None:
        return len(self.entries) - 1 or None

    @property
    def differences(self) -> int:
        return len(self.entries) - 1

    def search(self) -> OrderedSearch:
        return OrderedSearch(len(self.entries))

    def software(self, question: int) -> Software:
        return self.entries[question].software

    def words(self, question: int) -> str:
        change = self.entries[question].change
        return f"commit {change.name}: {change.bad}" if change.kind == "commit" else f"{change.name} {change.bad}"

    def conclusion(self, finding: OrderedFinding) -> Conclusion[int]:
        suspects = tuple(self.entries[index].change for index in finding.suspects)
        located = finding.outcome in REASONS
        reason = REASONS.get(finding.outcome, finding.reason)
        if finding.outcome == "culprit":
            reason = f"{self.words(finding.suspects[0])} {reason}"
        proof: list[tuple[int, Answer]] = []
        if finding.first_bad is not None:
            proof.append((finding.first_bad, Answer.BAD))
        if finding.last_good:  # the first entry is good by definition
            proof.append((finding.last_good, Answer.GOOD))
        return Conclusion(
            finding.outcome,
            reason,
            (suspects,) if located else (),
            () if located else tuple(dict.fromkeys(self.words(index) for index in finding.suspects)),
            tuple(proof),
            finding.first_bad if located else None,
            finding.last_good if finding.first_bad is not None else None,
            finding.first_bad,
        )
