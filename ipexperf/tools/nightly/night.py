"""The steps of a night: measure, accept what is well, open and close issues, search causes. Each is done once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

from ipexperf.tools.nightly.ledger import ACCEPT, MEASURE, SEARCH, SORT, Finding, Issue, Ledger, Night


class Tools(Protocol):
    """What a night starts."""

    def measure(self, date: str) -> Night:
        """Run the suite. Returns what it found."""

    def accept(self, night: Night) -> None:
        """Accept its run, so that the next night is judged beside its software. What failed keeps what it has."""

    def search(self, command: str, seconds: float) -> str:
        """Run a search for so many seconds. Returns its answer in a sentence. Empty: it has none yet."""

    def keep(self, ledger: Ledger) -> None:
        """Write the ledger and its texts."""


def play(
    ledger: Ledger, date: str, tools: Tools, seconds: float, clock: Callable[[], float] = time.monotonic
) -> tuple[Ledger, Night]:
    """Play a night, or the rest of it. Searches may take so many seconds together."""
    night = ledger.tonight(date)
    if MEASURE not in night.done:
        night = replace(tools.measure(night.date), done=(MEASURE,))
        ledger = _kept(ledger, night, tools)
    if ACCEPT not in night.done:
        if night.measured:
            tools.accept(night)
        night = replace(night, done=(*night.done, ACCEPT))
        ledger = _kept(ledger, night, tools)
    if SORT not in night.done:
        ledger = ledger.with_issues([*_seen(ledger, night), *_new(ledger, night)])
        night = replace(night, done=(*night.done, SORT))
        ledger = _kept(ledger, night, tools)
    if SEARCH not in night.done:
        until = clock() + seconds
        for issue in ledger.open:
            if not issue.searched and (found := _searched(issue, tools, until, clock)):
                ledger = ledger.with_issues([found])
                tools.keep(ledger)
        night = replace(night, done=(*night.done, SEARCH))
        ledger = _kept(ledger, night, tools)
    return ledger, night


def _kept(ledger: Ledger, night: Night, tools: Tools) -> Ledger:
    ledger = ledger.with_night(night)
    tools.keep(ledger)
    return ledger


def _seen(ledger: Ledger, night: Night) -> Iterable[Issue]:
    """The open issues after this night: seen again, or closed. One whose cases were not measured stays as it is."""
    tonight = {finding.case: finding for finding in night.findings}
    for issue in ledger.open:
        if issue.cases & tonight.keys():
            findings = (tonight.get(finding.case, finding) for finding in issue.findings)
            # What was known when it began says more than what differs many nights later.
            kept = (replace(new, dossier=new.dossier or old.dossier, searches=old.searches or new.searches)
                    for old, new in zip(issue.findings, findings, strict=True))  # fmt: skip
            yield replace(issue, last=night.date, findings=tuple(kept))
        elif issue.cases <= set(night.measured):
            yield replace(issue, closed=night.date)


def _new(ledger: Ledger, night: Night) -> Iterable[Issue]:
    """The issues that begin tonight: cases that no open one has, those with the same differences together."""
    known = frozenset[str]().union(*(issue.cases for issue in ledger.open))
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for finding in night.findings:
        if finding.case not in known:
            alike.setdefault(finding.differs, []).append(finding)
    number = max((issue.number for issue in ledger.issues), default=0)
    for findings in alike.values():
        number += 1
        worst = sorted(findings, key=lambda finding: -(finding.ratio or 0.0))
        yield Issue(number, night.date, _well(ledger, night, worst[0].case), tuple(worst), night.date)


def _well(ledger: Ledger, night: Night, case: str) -> str:
    """The last night before this one in which a case was well."""
    return next((one.date for one in ledger.before(night) if case in one.measured), "")


def _searched(issue: Issue, tools: Tools, until: float, clock: Callable[[], float]) -> Issue | None:
    """The issue with what its searches found. None if there was no time: the next night goes on."""
    answers = []
    for command in issue.findings[0].searches:
        if (left := until - clock()) <= 0 or not (answer := tools.search(command, left)):
            return None
        answers.append(answer)
    return replace(issue, culprit="; ".join(answers), searched=True)
