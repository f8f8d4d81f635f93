"""The result of a search for a culprit, as it is printed, recorded and drawn."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ipexperf.case import Case
from ipexperf.judge.bisection import Change
from ipexperf.judge.ratios import Ratio


@dataclass(frozen=True, slots=True)
class BisectionRecord:
    """The end of one search. `outcome` is one of those of `judge.bisection.SearchResult`."""

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
        return {**asdict(self), "case": self.case.to_json()}
