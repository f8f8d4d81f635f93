"""The comment: what became slower, by how much and why; what became faster; the rest folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ipexperf import outcomes
from ipexperf.commands import gate
from ipexperf.history.records import Recorded, RunDetail
from ipexperf.report import markdown, units
from ipexperf.report.moved import changed
from ipexperf.result import MEAN, PairsEvidence

LIMIT = 60_000
"""Bytes of a comment. GitHub takes 65,536 characters, and more from nobody."""
REASONS = 3
"""Most reasons to show of one case."""


@dataclass(frozen=True, slots=True)
class Comment:
    """What to say of a run. `changed`: whether that is worth a comment where there is none yet."""

    body: str
    changed: bool


def marker(name: str) -> str:
    """The line by which our comment is found again. It is not shown."""
    return f"<!-- ipexperf: {name} -->"


def of(detail: RunDetail, name: str, link: str = "") -> Comment:
    """The comment of this name on a run. `link` leads to where its files are."""
    cases = sorted(detail.cases, key=lambda one: (outcomes.place(one.outcome), _name(one)))
    bad = [one for one in cases if gate.test_failed(one)]
    good = [one for one in cases if one.outcome == "improved" and one not in bad]
    rest = [one for one in cases if one not in bad and one not in good]
    said = [(count, word) for count, word in ((len(bad), "worse"), (len(good), "faster")) if count]
    fails = bool(detail.run.settled.get("fails"))
    title = ", ".join(f"{count} {word}" for count, word in said)
    title = title or ("the run as a whole is slower" if fails else "nothing slower, nothing faster")
    lines = [marker(name), f"### ipexperf: {title}", ""]
    if line := detail.run.settled.get("line"):
        lines += [f"**{markdown.plain(line)}**", ""]
    for one in (*bad, *good):
        lines += _told(one)
    lines += _folded(rest)
    files = f" · [files of this run]({link})" if link else ""
    against = next((x for one in cases if (x := _evidence(one))), None)
    beside = f", beside {markdown.plain(against.against)}" if against else ""
    end = ["", f"<sub>Measured on {markdown.plain(detail.run.machine_key)}{beside}{files}</sub>"]
    return Comment(_cut(lines, end), bool(said) or fails)


def _evidence(one: Recorded) -> PairsEvidence | None:
    evidence = one.verdict.evidence if one.verdict else None
    return evidence if isinstance(evidence, PairsEvidence) else None


def _name(one: Recorded) -> str:
    return one.case.model if one.case.is_call else one.case.id


def _told(one: Recorded) -> Iterator[str]:
    """A case in a line, with its reasons below."""
    verdict = one.verdict
    time = ""
    if verdict is not None and verdict.ratio is not None:
        interval = f" {units.interval(verdict.lo, verdict.hi)}" if verdict.lo and verdict.hi else ""
        time = f": **{units.percent(verdict.ratio)}**{interval}"
    word = "" if one.outcome in ("regressed", "improved") else f" {outcomes.title(one.outcome)}"
    yield f"- {outcomes.row(one.outcome).emoji} `{markdown.code(_name(one))}`{word}{time}"
    for reason in list(dict.fromkeys(_reasons(one)))[:REASONS]:
        yield f"  - {markdown.plain(reason)}"


def _reasons(one: Recorded) -> Iterator[str]:
    """Why, as far as it is known: what was lost, other metrics, answers, what differs, what ran otherwise."""
    verdict = one.verdict
    if verdict is None:
        return
    if not outcomes.has_numbers(one.outcome):
        yield verdict.reason
    if verdict.structure is not None:
        yield from (f"lost: {loss}" for loss in verdict.structure.losses)
        if verdict.structure.work:
            yield verdict.structure.work
    yield from (f"{other.metric} {changed(other)}" for other in verdict.moved if other.metric != MEAN)
    if evidence := _evidence(one):
        yield from filter(None, [evidence.answers])
        yield from evidence.differences
    if verdict.structure is not None:
        yield from verdict.structure.changes


def _folded(rest: Sequence[Recorded]) -> Iterator[str]:
    if not rest:
        return
    counts = Counter(one.outcome for one in rest)
    told = ", ".join(f"{counts[name]} {outcomes.title(name)}" for name in sorted(counts, key=outcomes.place))
    yield from ("", f"<details><summary>{units.plural(len(rest), 'other')}: {told}</summary>", "")
    yield from ("| case | time | verdict |", "|---|--:|---|")
    for one in rest:
        ratio = one.verdict.ratio if one.verdict else None
        time = "-" if ratio is None else units.percent(ratio)
        yield f"| `{markdown.code(_name(one))}` | {time} | {outcomes.title(one.outcome)} |"
    yield from ("", "</details>")


def _cut(lines: Sequence[str], end: Sequence[str]) -> str:
    """As many lines as a comment may have, and how many are missing."""
    whole = "\n".join([*lines, *end])
    if len(whole.encode()) <= LIMIT:
        return whole
    kept = markdown.fitting([f"{line}\n" for line in lines], LIMIT - len("\n".join(end).encode()) - 200)
    fold = ["", "</details>"] if any(line.startswith("<details>") for line in kept) else []
    return "".join(kept) + "\n".join([*fold, "", markdown.missing(lines, kept), *end])
