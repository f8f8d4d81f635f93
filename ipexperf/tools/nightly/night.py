"""The steps of a night: measure, accept what is well, open and close issues, search causes. Each is done once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from ipexperf.report.rerun import Search
from ipexperf.tools.nightly.ledger import ACCEPT, MEASURE, SEARCH, WEEK, Finding, Issue, Ledger, Night


class Tools(Protocol):
    """What a night starts."""

    def measure(self, date: str) -> Night:
        """Run the suite. Returns what it found."""

    def accept(self, night: Night, cases: Sequence[str]) -> None:
        """Accept these cases of its run, so that the next night is judged beside their software."""

    def search(self, finding: Finding, search: Search, seconds: float) -> tuple[str, bool]:
        """Search the cause of a finding for so many seconds.

        Returns its answer in a sentence, and whether that is its last one. An empty answer: it has none yet.
        """

    def keep(self, ledger: Ledger) -> None:
        """Write the ledger and its texts."""


def play(
    ledger: Ledger, date: str, tools: Tools, seconds: float, clock: Callable[[], float] = time.monotonic
) -> tuple[Ledger, Night]:
    """Play a night, or the rest of it. Searches may take so many seconds together."""
    night = ledger.tonight(date)
    if MEASURE not in night.done:
        night = replace(tools.measure(night.date), done=(MEASURE,))
        ledger = _kept(ledger.with_issues([*_seen(ledger, night), *_new(ledger, night)]), night, tools)
    if ACCEPT not in night.done:
        if cases := acceptable(ledger, night):
            tools.accept(night, cases)
        night = replace(night, done=(*night.done, ACCEPT))
        ledger = _kept(ledger, night, tools)
    if SEARCH not in night.done:
        until = clock() + seconds
        for issue in ledger.open:
            if not issue.searched and (after_search := _searched(issue, tools, until, clock)):
                ledger = ledger.with_issues([after_search])
                tools.keep(ledger)
        night = replace(night, done=(*night.done, SEARCH))
        ledger = _kept(ledger, night, tools)
    return ledger, night


def acceptable(ledger: Ledger, night: Night) -> list[str]:
    """The cases to accept: what neither failed tonight nor has an open issue. None if the run failed as a whole."""
    doubtful = night.failed.union(*(issue.cases for issue in ledger.open))
    return [] if night.red else [case for case in night.measured if case not in doubtful]


def _kept(ledger: Ledger, night: Night, tools: Tools) -> Ledger:
    ledger = ledger.with_night(night)
    tools.keep(ledger)
    return ledger


def _seen(ledger: Ledger, night: Night) -> Iterator[Issue]:
    """The open issues after this night: seen again, with fewer cases, or closed."""
    tonight = {finding.case: finding for finding in night.findings}
    for issue in ledger.open:
        left, ended = [], dict(issue.ended)
        for finding in issue.findings:
            if finding.case in night.well:
                ended[finding.case] = f"well again in the night of {night.date}"
            elif ledger.vanished(finding.case, night):
                ended[finding.case] = f"not measured for {WEEK} nights"
            else:
                new = tonight.get(finding.case, finding)
                # What was known when it began says more than what differs many nights later.
                left.append(
                    replace(new, dossier=new.dossier or finding.dossier, searches=finding.searches or new.searches)
                )
        if not left:
            yield replace(issue, ended=ended, closed=night.date)
        elif ended != issue.ended or issue.cases & night.failed:
            last = night.date if issue.cases & night.failed else issue.last
            yield replace(issue, findings=_sorted(left), ended=ended, last=last)


def _new(ledger: Ledger, night: Night) -> Iterator[Issue]:
    """The issues that begin tonight: cases that no open one has, those with the same differences together."""
    known = frozenset[str]().union(*(issue.cases for issue in ledger.open))
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for finding in night.findings:
        if finding.case not in known:
            alike.setdefault(finding.differs or (finding.reason,), []).append(finding)
    number = max((issue.number for issue in ledger.issues), default=0)
    for findings in alike.values():
        number += 1
        worst = _sorted(findings)
        yield Issue(number, night.date, _well(ledger, night, worst[0].case), worst, night.date)


def _sorted(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: -(finding.ratio or 0.0)))


def _well(ledger: Ledger, night: Night, case: str) -> str:
    """The last night before this one in which a case was measured and did not fail."""
    return next(
        (earlier.date for earlier in ledger.before(night) if case in earlier.measured and case not in earlier.failed),
        "",
    )


def _searched(issue: Issue, tools: Tools, until: float, clock: Callable[[], float]) -> Issue | None:
    """The issue with what its searches found. None if there was no time, or no dossier that says what to search."""
    slowest, answers, last = issue.findings[0], [], True
    if not slowest.dossier:
        return None
    for search in slowest.searches:
        if (left := until - clock()) <= 0:
            return None
        answer, is_last = tools.search(slowest, search, left)
        if not answer:
            return None
        answers.append(answer)
        last = last and is_last
    return replace(issue, culprit="; ".join(answers), searched=last)
