"""What the nights before found: a file that each step of a night writes, so that a night that was cut off goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ipexperf.errors import UsageError
from ipexperf.judge.baseline import write_text
from ipexperf.report.rerun import Search
from ipexperf.tools import codec

NAME = "nights.json"
VERSION = 2
DATE = r"\d{4}-\d\d-\d\d(-\d\d+)?"
"""The name of a night, as a pattern."""
KEPT = 30
"""So many nights are remembered."""
MEASURE, ACCEPT, SEARCH = STEPS = ("measure", "accept", "search")
"""What a night does, in this order."""
WEEK = 7
"""What one of so many nights before has measured is missed tonight."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A case that failed tonight."""

    case: str
    reason: str
    ratio: float | None = None
    differs: tuple[str, ...] = ()
    """What differs from when it was well."""
    told: tuple[str, ...] = ()
    """The first lines of its dossier."""
    dossier: str = ""
    searches: tuple[Search, ...] = ()
    run: str = ""
    """The uid of the run in which it failed."""

    def __post_init__(self) -> None:
        if self.dossier and not re.fullmatch(rf"\.\./dossiers/{DATE}/[\w.+-]+-\w+/index\.html", self.dossier):
            raise ValueError(f"'{self.dossier}' is no dossier of a night")


@dataclass(frozen=True, slots=True)
class Night:
    """One night: what it measured, and what it has done so far."""

    date: str
    run: str = ""
    """The uid of its run. Empty: nothing was recorded."""
    machine: str = ""
    measured: tuple[str, ...] = ()
    """The ids of the cases that ran, whatever became of them."""
    well: tuple[str, ...] = ()
    """Those of which it is known that they are not slower than in the last good night."""
    findings: tuple[Finding, ...] = ()
    red: str = ""
    """Why the night is red beside its findings: nothing was recorded, or the run failed as a whole."""
    done: tuple[str, ...] = ()
    """The steps that are over."""

    def __post_init__(self) -> None:
        if not (re.fullmatch(DATE, self.date) and re.fullmatch(r"(\w[\w-]*)?", self.run)):
            raise ValueError(f"'{self.date}' with the run '{self.run}' is no night")

    @property
    def failed(self) -> frozenset[str]:
        return frozenset(finding.case for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Issue:
    """A regression: the cases that began to fail in one night, with the same differences."""

    number: int
    since: str
    """The first night in which it was seen."""
    before: str
    """The night before that in which its slowest case was measured and did not fail. Empty: none is known."""
    findings: tuple[Finding, ...]
    """The cases that are not well again, the slowest first. Of a closed issue: the last ones."""
    last: str = ""
    """The last night in which it was seen."""
    ended: Mapping[str, str] = field(default_factory=dict)
    """What became of its other cases."""
    closed: str = ""
    """The night in which none of its cases was left."""
    culprit: str = ""
    searched: bool = False
    """Whether its cause was searched to the end, found or not."""

    @property
    def cases(self) -> frozenset[str]:
        return frozenset() if self.closed else frozenset(finding.case for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The nights, the newest last, and the issues."""

    nights: tuple[Night, ...] = ()
    issues: tuple[Issue, ...] = ()

    @property
    def open(self) -> list[Issue]:
        return [issue for issue in self.issues if not issue.closed]

    def tonight(self, date: str) -> Night:
        """The night of this date: as far as it came, or a new one, which has a number if it is not the first."""
        if not self.nights or not self.nights[-1].date.startswith(date):
            return Night(date)
        last = self.nights[-1]
        count = sum(night.date.startswith(date) for night in self.nights)
        return Night(f"{date}-{count + 1:02}") if set(STEPS) <= set(last.done) else last

    def with_night(self, night: Night) -> Ledger:
        others = [other for other in self.nights if other.date != night.date]
        return replace(self, nights=tuple([*others, night][-KEPT:]))

    def with_issues(self, issues: Iterable[Issue]) -> Ledger:
        """These issues in the place of those with their numbers."""
        together = {issue.number: issue for issue in (*self.issues, *issues)}
        return replace(self, issues=tuple(together[number] for number in sorted(together)))

    def before(self, night: Night) -> list[Night]:
        """The nights before this one that measured anything, the newest first."""
        return [earlier for earlier in reversed(self.nights) if earlier.date < night.date and earlier.measured]

    def missed(self, night: Night) -> dict[str, str]:
        """What one of the last nights measured and this one has not, each with the last night that did."""
        missed: dict[str, str] = {}
        for earlier in self.before(night)[:WEEK]:
            for case in earlier.measured:
                if case not in night.measured:
                    missed.setdefault(case, earlier.date)
        return missed

    def vanished(self, case: str, night: Night) -> bool:
        """Whether neither this night nor one of the last WEEK has measured a case."""
        before = self.before(night)[: WEEK - 1]
        return len(before) == WEEK - 1 and not any(case in near.measured for near in (night, *before))


def read(folder: Path) -> Ledger:
    """Read the ledger of a folder. Empty if there is none. Raises UsageError if it is damaged."""
    path = folder / NAME
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if (version := document.pop("version")) != VERSION:
            raise UsageError(f"{path} has version {version}, and this program knows {VERSION}: remove it to begin anew")
        return codec.record(Ledger, document)
    except FileNotFoundError:
        return Ledger()
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"{path} is damaged ({error}): remove it to begin anew") from error


def write(ledger: Ledger, folder: Path) -> None:
    document = {"version": VERSION, **asdict(ledger)}
    write_text(folder / NAME, json.dumps(document, indent=1) + "\n")
