"""All pages except those of the cases: overview, runs, each newest run, speed-ups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ipexperf import outcomes
from ipexperf.dashboard import data
from ipexperf.dashboard.change_marks import Mark
from ipexperf.dashboard.story import CaseStory, Story, badness
from ipexperf.history import tables
from ipexperf.history.board import Board
from ipexperf.history.speedups import speedups
from ipexperf.judge.environment import differences
from ipexperf.judge.sentence import sentence
from ipexperf.ratio import numbers
from ipexperf.sentences import few
from ipexperf.units import plural

MOST_CHANGES = 200
"""The most changes to show on the overview."""
CAUSES = 3
"""The most differences that a change names there."""


def overview(story: Story, folder: Path) -> dict[str, Any]:
    """Return the overview: what changed, and every case with its newest run, the worst first."""
    newest = len(story.board.runs) - 1
    entries = [entry for entry in story.entries if not entry.experiment]
    changes = [(index, mark, entry) for index, entry in enumerate(entries) if (mark := entry.change)]
    changes.sort(key=lambda change: _urgency(change[1], change[2]))
    run = story.board.runs[newest]
    return {
        "title": "Overview",
        "run": run,
        "when": data.moment(run.started_at),
        "settled": "" if _all_experiments(story, newest) else run.meta.get("settled", {}).get("line", ""),
        "cases": len(entries),
        "data": {
            "rows": [data.drop(data.row(entry, newest)) for entry in entries],
            "changes": [
                data.drop({"row": index, **_change(mark, entry), "dossier": data.dossier(story, entry, folder)})
                for index, mark, entry in changes[:MOST_CHANGES]
            ],
            "untold": max(0, len(changes) - MOST_CHANGES) + story.older,
        },
    }


def _urgency(mark: Mark, entry: CaseStory) -> tuple[Any, ...]:
    """Return the place of a change among those of the overview: those that fail now first, those that are over last."""
    muted = mark.undone or entry.acceptance(mark) is not None
    found = entry.found(mark)
    ratio = (found.times if found else None) or mark.ratio
    size = abs(math.log(ratio)) if ratio else 0.0
    now = entry.newest.outcome
    return muted, mark.better, not outcomes.row(now).fails, outcomes.place(now), -size, entry.case.id


def compare(story: Story) -> dict[str, Any]:
    """Return every case through time, for the reader to choose two runs of."""
    rows = [
        {
            **data.named(entry),
            "run": [spot.run for spot in entry.spots],
            "step": data.steps(entry.spots),
            "ran": data.once(story.environments(entry)),
        }
        for entry in story.entries
        if len(entry.spots) > 1
    ]
    return {"title": "Compare", "data": {"rows": rows}}


def _all_experiments(story: Story, place: int) -> bool:
    """Whether all cases of a run were experiments."""
    found = [place in entry.line.experiments for entry in story.entries for spot in entry.spots if spot.run == place]
    return bool(found) and all(found)


def _change(mark: Mark, entry: CaseStory) -> dict[str, Any]:
    """Return a change as a row of the overview: how much, since when, by what, and whether it was accepted."""
    accepted = entry.acceptance(mark)
    found = entry.found(mark)
    change, levels = data.moved(mark, entry)
    return {
        "kind": now if outcomes.row(now := entry.newest.outcome).fails else mark.kind,
        "change": change,
        "levels": " \N{RIGHTWARDS ARROW} ".join(levels),
        "run": mark.run,
        "why": few(mark.lines, CAUSES, between="; ") or (found.reason if found else ""),
        "over": mark.text if mark.undone else None,
        "accepted": f"accepted by {accepted.by}, {accepted.at[:10]}: {accepted.reason}" if accepted else None,
    }


def run_list(story: Story, entries: Mapping[int, Sequence[tuple[CaseStory, int]]]) -> dict[str, Any]:
    """Return every run, newest first, with the outcomes of its cases. `entries` has the cases of each run."""
    rows = []
    for place, run in reversed([*enumerate(story.board.runs)]):
        of_run = entries.get(place, ())
        verdicts = [_outcome(entry, index) for entry, index in of_run if place not in entry.line.experiments]
        rows.append(
            {
                "place": place,
                "run": run,
                "when": data.moment(run.started_at),
                "cases": len(of_run),
                "outcomes": data.counted(verdicts),
                "experiments": len(of_run) - len(verdicts),
            }
        )
    return {"title": "Runs", "rows": rows, "torch": any(run.torch_version for run in story.board.runs)}


def run_page(story: Story, place: int, entries: Sequence[tuple[CaseStory, int]]) -> dict[str, Any]:
    """Return the page of a run: its cases, its environment, and differences from the run before on that machine."""
    board = story.board
    run = board.runs[place]
    earlier = (other for other in reversed(range(place)) if board.runs[other].machine_key == run.machine_key)
    before = next(earlier, None)
    rows = [_case_of(entry, index) for entry, index in entries]
    rows.sort(key=lambda row: badness(row["outcome"], row.get("ratio")))
    return {
        "title": f"Run {data.moment(run.started_at)}",
        "run": run,
        "when": data.moment(run.started_at),
        "settled": run.meta.get("settled", {}).get("line", ""),
        "before": None if before is None else board.runs[before],
        "before_place": before,
        "differs": [] if before is None else _between(board, before, place),
        "environment": _environment(board, place),
        "command": data.own_command(run.meta),
        "outcomes": data.counted(row["outcome"] for row in rows),
        "data": {"rows": rows},
    }


def _case_of(entry: CaseStory, index: int) -> dict[str, Any]:
    """Return a case as a row of a run."""
    spot = entry.spots[index]
    judged = entry.line.verdicts.get(spot.run)
    newest = spot.run == entry.now.run
    verdict = entry.newest.verdict if newest else None
    return data.drop(
        {
            **data.named(entry, root="../"),
            "outcome": _outcome(entry, index),
            **data.timed(spot),
            "ratio": data.short(judged.ratio) if judged else None,
            "right": data.right(entry.newest) if newest else None,
            "why": sentence(verdict) if verdict else None,
        }
    )


def _outcome(entry: CaseStory, index: int) -> str:
    spot = entry.spots[index]
    judged = entry.line.verdicts.get(spot.run)
    return judged.outcome if judged else spot.outcome


def _between(board: Board, old: int, new: int) -> list[str]:
    first, second = (board.environments[board.of_runs[place]] for place in (old, new))
    lines = differences(first, second)
    before, after = ((board.runs[place].commit or "unknown")[:12] for place in (old, new))
    return lines if before == after else [*lines, f"commit: {before} -> {after}"]


def _environment(board: Board, place: int) -> list[tuple[str, list[tuple[str, str]]]]:
    document = board.environments[board.of_runs[place]]
    return [
        (section, [(name, _plain(value)) for name, value in sorted(document[section].items()) if value is not None])
        for section in ("hardware", "software", "variables")
        if document.get(section)
    ]


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def gains(story: Story) -> dict[str, Any]:
    """Return the speed-ups of dtypes, stacks, devices and settings, from the newest run of every case."""
    pages = {(entry.case.slot[:2], entry.line.machine_key): entry.slug for entry in story.entries}
    compared = speedups([entry.newest for entry in story.entries if not entry.experiment], paired=story.paired)
    runs = {speedup.run_uid for speedup in compared}
    paired = [speedup.paired for speedup in compared if speedup.speedup is not None]
    names = ("kind", "over", "model", "device", "dtype", "mode", "stack", "batch", "metric", "seen")
    rows = [
        {
            **{name: getattr(speedup, name) for name in names},
            "id": speedup.case_id,
            "page": f"cases/{pages[(speedup.case_id, speedup.batch), speedup.machine_key]}.html",
            "machine": speedup.machine_key,
            **{name: data.short(value) for name, value in numbers(speedup.speedup, "speedup").items()},
            "note": "; ".join(filter(None, (plural(speedup.rounds, "round") if speedup.paired else "", speedup.note))),
            "right": _rights(speedup.accuracy_metric, speedup.base_accuracy, speedup.accuracy),
        }
        for speedup in compared
    ]
    return {
        "title": "Speed-ups",
        "in_turns": any(paired),
        "launches": not all(paired),
        "twins": [
            tables.twin_text(twin) for (uid, _), paired in story.paired.items() if uid in runs for twin in paired.twins
        ],
        "data": {"rows": rows},
    }


def _rights(metric: str | None, base: float | None, value: float | None) -> str:
    if metric is None:
        return "-"
    both = [data.formatted(metric, x) for x in (base, value) if x is not None]
    return f"{metric} " + " \N{RIGHTWARDS ARROW} ".join(dict.fromkeys(both))
