"""The texts of a night and of an issue, as markdown. Pure functions of the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipexperf import units
from ipexperf.report.markdown import code, plain
from ipexperf.tools.nightly.ledger import Issue, Ledger, Night

SHOWN = 10


def title(issue: Issue) -> str:
    """What is slower, and by how much, in a line."""
    worst, others = issue.findings[0], len(issue.findings) - 1
    ratio = f": {units.percent(worst.ratio)}" if worst.ratio is not None else ""
    return f"{worst.case}{f' and {others} more' if others else ''}{ratio}"


def issue(issue: Issue) -> str:
    """The text of an issue. It is written anew each night, and says all that is known."""
    return "\n".join(_issue(issue)) + "\n"


def _issue(issue: Issue) -> Iterator[str]:
    yield f"# {plain(title(issue))}"
    yield ""
    if issue.closed:
        yield f"**Closed** in the night of {issue.closed}."
    else:
        well = f"; last well in the night of {issue.before}" if issue.before else ""
        yield f"**Open** since the night of {issue.since}{well}; last seen in that of {issue.last}."
    yield ""
    if issue.culprit:
        yield f"**Culprit**: {plain(issue.culprit)}"
    elif issue.searched:
        yield "**Culprit**: nothing that can be searched: see what differs."
    elif not issue.closed:
        yield "**Culprit**: not searched yet, for want of time or of a dossier. The next night goes on."
    for case, what in issue.ended.items():
        yield f"- {code(case)}: {what}"
    for number, finding in enumerate(issue.findings[:SHOWN]):
        from_dossier = finding.told[1:] if number == 0 else ()
        lines = [plain(finding.reason), *(f"- {plain(line)}" for line in from_dossier)]
        lines += [f"- [dossier]({finding.dossier})"] if finding.dossier else []
        yield from _section(code(finding.case), lines)
    if more := issue.findings[SHOWN:]:
        yield ""
        yield f"And {units.plural(len(more), 'more case')}: {', '.join(code(finding.case) for finding in more)}"


def _section(heading: str, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", f"## {heading}", "", *lines)


def night(ledger: Ledger, night: Night) -> str:
    """The text of a night: what is new, what is still open, what was closed, and what was not measured."""
    return "\n".join(_night(ledger, night)) + "\n"


def _night(ledger: Ledger, night: Night) -> Iterator[str]:
    new = [issue for issue in ledger.issues if issue.since == night.date]
    still = [issue for issue in ledger.open if issue.since != night.date]
    closed = [issue for issue in ledger.issues if issue.closed == night.date]
    yield f"# Night of {night.date}: {summary(ledger, night)}"
    before = ledger.before(night)
    if before and before[0].machine and night.machine and before[0].machine != night.machine:
        yield ""
        machines = f"{before[0].machine} -> {night.machine}"
        yield f"The machine is another one than in the night of {before[0].date}: {machines}."
    for name, issues in (("New", new), ("Still open", still), ("Closed", closed)):
        if issues:
            yield from _section(name, map(_line, issues))
    if missed := ledger.missed(night):
        lines = [f"- {code(case)}, last measured in the night of {date}" for case, date in missed.items()]
        more = [f"- and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        yield from _section("Not measured", [*lines[:SHOWN], *more])


def _line(issue: Issue) -> str:
    culprit = f": {plain(issue.culprit)}" if issue.culprit else ""
    return f"- [{plain(title(issue))}](issues/{file_of(issue)}){culprit}"


def summary(ledger: Ledger, night: Night) -> str:
    """The night in a line."""
    new = sum(issue.since == night.date for issue in ledger.issues)
    parts = [plain(night.red)] if night.red else []
    parts += [f"{len(night.measured) - len(night.failed)} of {units.plural(len(night.measured), 'case')} passed"]
    parts += [f"{units.plural(new, 'new regression')}"] if new else []
    parts += [f"{len(ledger.open) - new} still open"] if len(ledger.open) > new else []
    missed = len(ledger.missed(night))
    return ", ".join([*parts, *([f"{missed} not measured that were before"] if missed else [])])


def file_of(issue: Issue) -> str:
    return f"{issue.number:04}.md"
