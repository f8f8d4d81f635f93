"""A snapshot of a host: its runs, their status, its journals, and how busy it was."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from ipexperf.tools.fleet import journal, status
from ipexperf.tools.fleet.journal import JournalSummary
from ipexperf.tools.fleet.status import DAY, Activity, GroupSpan, Status

ACTIVITY = "activity.jsonl"


def activity_of(host: Path) -> Activity:
    """The record of what was measured on a host."""
    return Activity(host / ".ipexperf" / "fleet" / ACTIVITY)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A host at a moment, by its own clock."""

    now: float
    journals: tuple[JournalSummary, ...]
    seconds: float
    """The length of the time that `busy` is a share of: since the host joined, at most a day."""
    busy: float
    """The share of that time in which the host measured."""
    stretches: tuple[GroupSpan, ...] = ()
    """The groups that it measured in that time, and the one that it measures now."""

    @property
    def doing(self) -> Status | None:
        """The status of the busiest process there. One whose pytest is gone may finish a group beside that of a run."""
        statuses = [entry.status for entry in self.journals if entry.status is not None]
        return max(statuses, key=lambda doing: (doing.state != "quiet", not doing.alone, doing.since), default=None)


def take(folder: Path, joined: float | None = None, now: float | None = None) -> Snapshot:
    """Take a snapshot of this host, whose journals are in this folder. It joined at `joined`, if that is known."""
    now = time.time() if now is None else now
    begin = max(now - DAY, joined or 0.0)
    journals = tuple(journal.summaries(journal.folder_of(folder)))
    states = [entry.status for entry in journals if entry.status is not None]
    stretches = activity_of(folder).since(begin)
    stretches += [GroupSpan(entry.since, now, entry.run, entry.group) for entry in states if entry.state == "measuring"]
    return Snapshot(now, journals, now - begin, status.share(stretches, begin, now), tuple(stretches))
