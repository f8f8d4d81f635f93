"""The result of a search for a culprit, as it is printed, recorded and drawn."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ipexperf.case import Case
from ipexperf.judge.bisection import Change


@dataclass(frozen=True, slots=True)
class RecordedRatio:
    """The step time over that of the good end, with its interval if it has one."""

    ratio: float
    lo: float | None
    hi: float | None


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
    ends: RecordedRatio | None = None
    """The bad end."""
    culprit: RecordedRatio | None = None
    """The good end with the culprits alone, or the first bad one of a list."""
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
