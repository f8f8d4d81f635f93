"""The comment: what became slower, by how much and why; what became faster; the rest folded."""

from __future__ import annotations

import json
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from ipexperf import outcomes, units
from ipexperf.case import ProgramCase
from ipexperf.errors import UsageError
from ipexperf.history.records import Recorded, RunDetail
from ipexperf.judge.sentence import details, headline, sentence
from ipexperf.outcomes import Outcome
from ipexperf.report import markdown
from ipexperf.tools import codec

LIMIT = 60_000
"""Bytes of a comment. GitHub takes 65,536 characters, and more from nobody."""
MOST = 2**20
"""Bytes of a file with contents."""
REASONS = 3
"""Most reasons to show of one case."""


@dataclass(frozen=True, slots=True)
class Line:
    """A case as a comment shows it."""

    name: str
    outcome: Outcome | Literal["interrupted"]
    found: str
    """The verdict in a sentence."""
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a comment says of a run, as data that a stranger may have written."""

    worse: tuple[Line, ...]
    faster: tuple[Line, ...]
    rest: tuple[Line, ...]
    whole: str
    """The verdict on the run as a whole, if there is one."""
    fails: bool
    """Whether the run fails as a whole."""
    machine: str
    """Where it was measured, and beside what."""
    untold: int = 0
    """How many cases of the rest could not be told."""
    format: Literal[1] = 1
    """The number of its schema in docs/schemas."""

    @property
    def title(self) -> str:
        """What became of all cases, in a few words."""
        worse, faster, rest = map(len, (self.worse, self.faster, self.rest))
        counts = ((worse, "worse"), (faster, "faster"), (self.untold, f"of {worse + faster + rest} not known"))
        whole = ["the run as a whole is slower"] if self.fails and not worse else []
        parts = [*whole, *(f"{count} {word}" for count, word in counts if count)]
        return ", ".join(parts) or "nothing slower, nothing faster"


def marker(name: str) -> str:
    """The line by which our comment is found again. It is not shown."""
    return f"<!-- ipexperf: {name} -->"


def of(detail: RunDetail) -> Contents:
    """What to say of a run."""
    cases = sorted(detail.cases, key=lambda recorded: (outcomes.place(recorded.outcome), recorded.case.name))
    bad = [recorded for recorded in cases if recorded.test_failed]
    good = [recorded for recorded in cases if recorded.outcome == "improved" and recorded not in bad]
    rest = [recorded for recorded in cases if recorded not in bad and recorded not in good]
    beside = next(
        (
            f", beside {recorded.verdict.pairs.against}"
            for recorded in cases
            if recorded.verdict and recorded.verdict.pairs
        ),
        "",
    )
    whole, fails = str(detail.run.settled.get("line") or ""), bool(detail.run.settled.get("fails"))
    causes: set[tuple[str, ...]] = set()
    worse, faster, folded = (tuple(_line(recorded, causes) for recorded in some) for some in (bad, good, rest))
    untold = sum(recorded.untold for recorded in rest)
    return Contents(worse, faster, folded, whole, fails, detail.run.machine_key + beside, untold)


def read(path: Path) -> Contents:
    """The contents that another job wrote into a file: a link or a pipe is none. Raises UsageError."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode) or path.stat().st_size > MOST:
            raise ValueError(f"it is no file of at most {units.size(MOST)}")  # noqa: TRY301 - told as the others
        return codec.record(Contents, json.loads(path.read_bytes()))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} is not what `ipexperf comment --json` prints: {str(reason)[:200]}") from None


def text(contents: Contents, name: str, link: str = "") -> str:
    """The comment of this name. `link` leads to where its files are. All texts of the contents become code."""
    lines = [marker(name), f"### ipexperf: {contents.title}", ""]
    if contents.whole:
        lines += [markdown.code(contents.whole), ""]
    for line in (*contents.worse, *contents.faster):
        lines += _shown(line)
    lines += _folded(contents.rest)
    files = f" · [files of this run]({link})" if link else ""
    return _cut(lines, ["", f"<sub>Measured on {markdown.code(contents.machine)}{files}</sub>"])


def _line(recorded: Recorded, causes: set[tuple[str, ...]]) -> Line:
    """The line of a case. What differs between the runs of a program is said of the first of its numbers alone."""
    verdict, found, more = recorded.verdict, "", list[str]()
    if verdict:
        cause = tuple(verdict.evidence.differences) if verdict.evidence else ()
        again = isinstance(recorded.case, ProgramCase) and cause in causes
        found, more = (headline if again else sentence)(verdict), details(verdict)
        causes.add(cause)
    return Line(recorded.case.name, cast("Outcome", recorded.outcome), found, tuple(more)[:REASONS])


def _shown(line: Line) -> Iterator[str]:
    """A case in a line, with its reasons below."""
    word = "" if line.outcome in ("regressed", "improved") else f" {outcomes.title(line.outcome)}"
    found = f": {markdown.code(line.found)}" if line.found else ""
    yield f"- {outcomes.row(line.outcome).emoji} {markdown.code(line.name)}{word}{found}"
    for reason in line.reasons[:REASONS]:
        yield f"  - {markdown.code(reason)}"


def _folded(rest: Sequence[Line]) -> Iterator[str]:
    if not rest:
        return
    counts = Counter(line.outcome for line in rest)
    summary = ", ".join(f"{counts[name]} {outcomes.title(name)}" for name in sorted(counts, key=outcomes.place))
    yield from ("", f"<details><summary>{units.plural(len(rest), 'other')}: {summary}</summary>", "")
    yield from ("| case | verdict | |", "|---|---|---|")
    for line in rest:
        yield f"| {markdown.cell(line.name)} | {outcomes.title(line.outcome)} | {markdown.cell(line.found)} |"
    yield from ("", "</details>")


def _cut(lines: Sequence[str], end: Sequence[str]) -> str:
    """As many lines as a comment may have, and how many are missing."""
    whole = "\n".join([*lines, *end])
    if len(whole.encode()) <= LIMIT:
        return whole
    kept = markdown.fitting([f"{line}\n" for line in lines], LIMIT - len("\n".join(end).encode()) - 200)
    fold = ["", "</details>"] if any(line.startswith("<details>") for line in kept) else []
    return "".join(kept) + "\n".join([*fold, "", markdown.missing(lines, kept), *end])
