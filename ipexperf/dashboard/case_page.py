"""The page of one case: its texts, and the numbers from which the browser draws its charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ipexperf import units
from ipexperf.case import AGAINST, NetworkCase
from ipexperf.dashboard import data
from ipexperf.dashboard.change_marks import Mark
from ipexperf.dashboard.story import CaseStory, Story
from ipexperf.history.bisections import of_cases
from ipexperf.history.records import Recorded
from ipexperf.judge.bisection import BisectionRecord
from ipexperf.judge.environment import FINDINGS, IMPORTED, SOURCE
from ipexperf.judge.sentence import sentence
from ipexperf.proof import fingerprint_lines, roof_lines
from ipexperf.report import bisections as report
from ipexperf.report.rerun import assignments, command, of_function, options
from ipexperf.result import PRIMARY

SURROUNDINGS = tuple(section for section in FINDINGS if section != SOURCE)
"""What breaks a line through time. Whoever edits every day would have dots instead."""
LOG_LINES = 12
CHANGES = 12
"""Changes of the fingerprint to show. `ipexperf show RUN CASE` shows all."""


def context(story: Story, entry: CaseStory) -> dict[str, Any]:
    """Return the context of the template. Blocks without content are left out of the page."""
    recorded, run = entry.newest, story.run_of(entry)
    verdict = recorded.verdict
    return {
        "title": entry.case.id,
        "case": entry.case,
        "machine": entry.line.machine_key,
        "run": run,
        "when": data.moment(run.started_at),
        "outcome": recorded.outcome,
        "why": sentence(verdict) if verdict else recorded.metrics[PRIMARY].reason,
        "runs": max(sum(spot.median is not None for spot in spots) for spots in entry.line.spots.values()),
        "figures": _figures(entry),
        "metrics": _metrics(recorded),
        "checks": _checks(recorded),
        "roof": roof_lines.rate_text(recorded.medians),
        "notes": list(dict.fromkeys(note for launch in recorded.counted for note in launch.document.get("notes", ()))),
        "failures": _failures(recorded),
        "ran": _fingerprint(entry),
        "differs": verdict.pairs.differences if verdict and verdict.pairs else (),
        "happened": [_change_row(story, entry, mark) for mark in reversed(entry.marks)],
        "reproduce": "" if IMPORTED in recorded.environment else _reproduce(recorded, run.meta),
        "data": _data(story, entry),
    }


def bisections(entry: CaseStory, searches: Sequence[BisectionRecord]) -> list[dict[str, Any]]:
    """Return the searches for a culprit of the case on this machine, newest first."""
    return [
        {
            "when": data.moment(search.finished_at),
            "ends": f"{search.good} to {search.bad}",
            "lines": report.block(search),
        }
        for search in reversed(of_cases(searches, [entry.case], entry.line.machine_key))
    ]


def _figures(entry: CaseStory) -> list[tuple[str, str, str]]:
    """Return the key figures at the top: name, value and remark."""
    recorded, spot = entry.newest, entry.now
    rows = []
    if spot.median is not None:
        text = units.plural(spot.n, "launch", "launches")
        if spot.lo and spot.hi and spot.n > 1:
            text += f", {units.in_percent((spot.hi - spot.lo) / spot.median, 1)} apart"
        rows.append((entry.case.step, data.formatted(PRIMARY, spot.median), f"median of {text}"))
    if entry.factor is not None:
        rounds = units.plural(entry.factor.rounds, "round")
        in_turns = f"{entry.factor.bounds}, in turns, {rounds}" if entry.factor.rounds else "throughput, same run"
        rows.append(("over stock fp32", f"{entry.factor.value:.2f}\N{MULTIPLICATION SIGN}", in_turns))
    if score := recorded.accuracy:
        rows.append((score[0], data.formatted(*score), ""))
    return rows


def _metrics(recorded: Recorded) -> list[dict[str, str]]:
    return [
        {
            "name": summary.metric,
            "median": units.amount(summary.median, summary.unit),
            "lo": units.amount(summary.lo, summary.unit) if summary.n > 1 and summary.lo is not None else "",
            "hi": units.amount(summary.hi, summary.unit) if summary.n > 1 and summary.hi is not None else "",
            "n": str(summary.n),
        }
        for summary in recorded.metrics.values()
        if summary.median is not None
    ]


def _checks(recorded: Recorded) -> list[dict[str, Any]]:
    """Return every check of proof and accuracy once, failed ones first."""
    names = ("name", "found", "expected", "ok")
    checks = [
        (kind, *(check[name] for name in names))
        for launch in recorded.counted
        for kind in ("proof", "accuracy")
        for check in launch.document.get(kind, ())
    ]
    rows = [dict(zip(("kind", *names), check, strict=True)) for check in dict.fromkeys(checks)]
    return sorted(rows, key=lambda row: bool(row["ok"]))


def _failures(recorded: Recorded) -> list[dict[str, str]]:
    return [
        {
            "name": f"launch {launch.index}: {launch.outcome}",
            "reason": launch.reason,
            "log": "\n".join(launch.log.strip().splitlines()[-LOG_LINES:]),
        }
        for launch in recorded.launches
        if launch.outcome != "ok"
    ]


def _fingerprint(entry: CaseStory) -> dict[str, Any] | None:
    """Return the fingerprint, and its differences from the baseline or the other arm."""
    state, fingerprint = entry.newest.common_fingerprint
    if fingerprint is None:
        return None
    verdict = entry.newest.verdict
    judged = verdict.structure if verdict else None
    rows: list[tuple[str, list[str]]] = []
    if judged and judged.changes:
        other = "other arm" if AGAINST in dict(entry.case.knobs) else "baseline"
        rows.append((f"otherwise than in the {other}", list(judged.changes[:CHANGES])))
    if state.changes:
        rows.append(("between the launches of this run", list(state.changes[:CHANGES])))
    return {"line": fingerprint_lines.in_one_line(fingerprint), "reason": state.reason, "changes": rows}


def _change_row(story: Story, entry: CaseStory, mark: Mark) -> dict[str, Any]:
    run = story.board.runs[mark.run]
    change, levels = data.moved(mark, entry)
    return {"mark": mark, "when": data.moment(run.started_at), "change": change, "levels": levels}


def _reproduce(recorded: Recorded, meta: Mapping[str, Any]) -> str:
    """Return the command that measures the case again. Older runs do not tell what else it takes."""
    case, again, verdict = recorded.case, meta.get("again", {}), recorded.verdict
    variables = again.get("variables", {})
    if verdict and verdict.pairs and verdict.pairs.own:
        return assignments(variables) + data.own_command(meta)  # only the words of `ab` have both arms
    if not isinstance(case, NetworkCase):
        benchmark = "--perf-benchmark" in (meta.get("command") or ())
        return of_function(case.name, None, "", variables, benchmark=benchmark)
    target = again.get("targets", {}).get(case.model, "")
    index, size = again.get("indices", {}).get(case.device, 0), case.size if target else None
    chosen = options(case, target=target, load=again.get("load", ()), plain_size=size, index=index)
    return command(chosen, max(1, len(recorded.counted)), variables=variables)


def _data(story: Story, entry: CaseStory) -> dict[str, Any]:
    verdicts = [entry.line.verdicts.get(spot.run) for spot in entry.spots]
    baselines = [verdict.baseline if verdict else None for verdict in verdicts]
    between = [
        (new.run, story.differ.between(entry.line, old.run, new.run, SURROUNDINGS))
        for old, new in pairwise(entry.spots)
    ]
    return data.drop(
        {
            "trends": data.trends(entry.line),
            "breaks": [[run, lines[0]] for run, lines in between if lines] or None,
            "verdict": data.once([verdict.outcome if verdict else "" for verdict in verdicts]),
            "baseline": data.once([data.short(value) for value in baselines]) if any(baselines) else None,
            "levels": [[level.first, level.last, data.short(level.value)] for level in entry.levels] or None,
            "marks": [
                {"run": mark.run, "kind": mark.kind, "text": mark.text, "lines": list(mark.lines)}
                for mark in entry.marks
            ]
            or None,
        }
    )
