"""A search for a culprit in words: the block that `ipexperf bisect` prints, and one line for lists and pages."""

from __future__ import annotations

from collections.abc import Sequence

from ipexperf.judge.bisection import BisectionRecord, Change

HEADS = {
    "culprit": "CULPRIT",
    "not alone": "NOT THIS ONE ALONE",
    "inseparable": "AMONG THESE, which could not be measured apart",
    "alike": "NOTHING TO FIND",
    "cannot tell": "CANNOT TELL",
}


def block(record: BisectionRecord, neighbours: tuple[str, str] | None = None, again: str = "") -> list[str]:
    """The finding with its proof. `neighbours` are the files of both locks, `again` a command to see it with."""
    lines = [f"{HEADS[record.outcome]}: {record.reason}"]
    lines += [f"  {change_text(change)}" for change in record.culprits]
    for name, ratio in (("both ends", record.ends), ("the culprit alone", record.culprit)):
        if ratio is not None:
            lines.append(f"time of {name}: {ratio}")
    lines += [f"ran      {line}" for line in record.ran]
    if record.suspects and record.outcome == "cannot tell":
        lines.append(f"suspects {', '.join(record.suspects)}")
    if neighbours is not None:
        lines.append(f"last good {neighbours[0]}, first bad {neighbours[1]}")
    if again:
        lines.append(f"reproduce {again}")
    lines.append(f"{record.measured} candidates measured for {record.differences} differences")
    return lines


def summary(record: BisectionRecord) -> str:
    """The finding in one line."""
    named = " with ".join(change_text(change) for change in record.culprits)
    cost = record.culprit or record.ends
    time = f", {cost}" if named and cost is not None else ""
    return f"{HEADS[record.outcome]}: {named or record.reason}{time}"


def change_text(change: Change) -> str:
    if change.kind == "commit":
        return f"commit {change.name}: {change.bad}"
    return f"{change.name}: {change.good or 'unset'} -> {change.bad or 'unset'}"


def listed(records: Sequence[BisectionRecord]) -> str:
    """The findings of several searches, a line each under a heading. Empty if there are none."""
    lines = [
        f"{record.finished_at[:10]} {record.case.id}, {record.good} to {record.bad}: {summary(record)}"
        for record in records
    ]
    return "\n".join(("BISECTED", *(f"  {line}" for line in lines))) if lines else ""
