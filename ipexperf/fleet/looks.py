"""What somebody who looks at a host sees: its runs, what they do, what it keeps, and how busy it was."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from ipexperf.fleet import journal, status
from ipexperf.fleet.journal import Kept
from ipexperf.fleet.status import DAY, Activity, Status, Stretch

ACTIVITY = "activity.jsonl"


def activity_of(host: Path) -> Activity:
    """The record of what was measured on a host."""
    return Activity(host / ".ipexperf" / "fleet" / ACTIVITY)


@dataclass(frozen=True, slots=True)
class Look:
    """A host at a moment, by its own clock."""

    now: float
    journals: tuple[Kept, ...]
    seconds: float
    """The length of the time that `busy` is a share of: since the host joined, at most a day."""
    busy: float
    """The share of that time in which the host measured."""
    stretches: tuple[Stretch, ...] = ()
    """The groups that it measured in that time, and the one that it measures now."""

    @property
    def doing(self) -> Status | None:
        """What the process there does that is busiest: one that finishes a group alone may be beside that of a run."""
        own = [one.status for one in self.journals if one.status is not None]
        return max(own, key=lambda one: (one.state != "quiet", not one.alone, one.since), default=None)


def look(folder: Path, joined: float | None = None, now: float | None = None) -> Look:
    """Look at this host, whose things are in this folder. It joined at `joined`, if that is known."""
    now = time.time() if now is None else now
    begin = max(now - DAY, joined or 0.0)
    journals = tuple(journal.kept(journal.folder_of(folder)))
    states = [one.status for one in journals if one.status is not None]
    stretches = activity_of(folder).since(begin)
    stretches += [Stretch(one.since, now, one.run, one.group) for one in states if one.state == "measuring"]
    return Look(now, journals, now - begin, status.share(stretches, begin, now), tuple(stretches))
