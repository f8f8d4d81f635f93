"""What people read of a history in a terminal: tables, and the lines around them."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ipexperf.history.drawing import SHORT, Columns, human, interval, moment, ratio, remarks, share
from ipexperf.judge.levels import MINIMUM
from ipexperf.judge.sentence import sentence
from ipexperf.outcomes import place, title
from ipexperf.proof import structure
from ipexperf.proof.fingerprint_lines import in_one_line
from ipexperf.proof.roof_lines import rate_text
from ipexperf.result import PRIMARY, THROUGHPUT
from ipexperf.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ipexperf.history.changed import Changed, Changes
    from ipexperf.history.comparison import ComparedCase, RunComparison
    from ipexperf.history.records import Recorded, RunDetail, RunRecord
    from ipexperf.history.rounds import Twin
    from ipexperf.history.speedups import Speedup
    from ipexperf.history.store import History

    Points = Sequence[Mapping[str, Any]]
    """The points of one series, oldest first."""

LOG_LINES = 5
INTERVALS = (
    "Intervals hold with 95 %: over rounds, in which both cases took turns, each by itself, where the note names "
    "rounds; else over launches, all together. What another day, driver or reboot changes is in none of them: "
    "`ipexperf ab` measures two stacks side by side."
)


def runs_table(runs: Iterable[RunRecord]) -> Columns:
    rows = (
        {
            "run": run.uid[:SHORT],
            "started (UTC)": moment(run.started_at),
            "status": "-" if run.status == "finished" else run.status,
            "branch": run.branch or "-",
            "commit": (run.commit or "-")[:10],
            "torch": run.torch_version,
            "IPEX": run.ipex_version,
            "machine": run.machine_key,
            "cases": ", ".join(f"{run.outcomes[name]} {name}" for name in sorted(run.outcomes, key=place)),
        }
        for run in runs
    )
    return Columns(rows, spare=("machine", "IPEX", "branch", "torch", "commit", "status"))


def run_text(detail: RunDetail) -> str:
    run = detail.run
    git = detail.environment.get("git") or {}
    lines = (
        ("run", f"{run.uid[:SHORT]}, {moment(run.started_at)} UTC, {run.status}"),
        ("commit", f"{run.commit or '-'} on {run.branch or '-'}{_uncommitted(git)}"),
        *((("stack", f"torch {run.torch_version}, IPEX {run.ipex_version or '-'}"),) if run.torch_version else ()),
        ("machine", run.machine_key),
    )
    return "\n".join(f"{name:8} {value}" for name, value in lines)


def _uncommitted(git: Mapping[str, Any]) -> str:
    """The digest of changes that were not committed: two such runs of one commit may be of two programs."""
    return f" (dirty{': ' if 'changes' in git else ''}{git.get('changes', '')})" if git.get("dirty") else ""


def case_text(recorded: Recorded) -> str:
    """A case with the reason of its verdict, how it ran otherwise, and what it ran."""
    verdict = recorded.verdict
    reason = sentence(verdict) if verdict else recorded.metrics[PRIMARY].reason
    lines = [f"\n{recorded.case.label}: {title(recorded.outcome)}", reason]
    lines += (*verdict.structure.losses, *verdict.structure.changes) if verdict and verdict.structure else ()
    lines += [f"ran {in_one_line(fingerprint)}"] if (fingerprint := recorded.fingerprint) else []
    lines += [f"did {rate}"] if (rate := rate_text(recorded.medians)) else []
    return "\n  ".join(filter(None, lines))


def metrics_table(recorded: Recorded) -> Columns:
    """Every metric of a case, with the verdict where it was judged."""
    rows = (
        {
            "metric": summary.metric,
            **_numbers(summary.unit, median=summary.median, smallest=summary.lo, largest=summary.hi),
            "launches": str(summary.n),
            "ratio": ratio(verdict.times) if verdict else None,
            "verdict": title(verdict.alone.outcome) if verdict else None,
        }
        for name, summary in recorded.metrics.items()
        if recorded.case.inputs or name != THROUGHPUT
        for verdict in [recorded.judged(name)]
    )
    return Columns(rows, spare=("launches",))


def _numbers(unit: str, **values: float | None) -> dict[str, str]:
    return {name: human(value, unit) for name, value in values.items()}


def _of(batch: int | None, *more: str) -> str:
    """What a row is of besides its case. A function has no batch."""
    return ", ".join([*([] if batch is None else [f"batch {batch}"]), *more])


def launches_text(recorded: Recorded) -> str:
    """Every failed launch with the last lines of its log, and the notes on the others."""
    notes = [
        (f"launch {launch.index}", "", note)
        for launch in recorded.launches
        for note in launch.document.get("notes", ())
    ]
    lines = [f"  {line}" for line in remarks(notes).splitlines()]
    for launch in recorded.launches:
        name = f"  launch {launch.index}"
        if launch.outcome == "contended":
            lines.append(f"{name}: contended: {launch.reason}; it was measured again, and does not count")
        elif launch.outcome != "ok":
            lines.append(f"{name}: {launch.outcome}: {launch.reason}")
            lines += [f"      {line}" for line in launch.log.splitlines()[-LOG_LINES:]]
    return "\n".join(lines)


def series_tables(every: Iterable[Points]) -> Iterator[tuple[str, Columns]]:
    """One table for each series, and the line above it that says whose it is."""
    for points in every:
        newest = points[-1]
        name = f"{newest['case_id']}, {_of(newest['batch'], newest['metric'])} on {newest['machine_key']}"
        yield name, Columns(map(_point_row, points), spare=("launches", "IPEX", "torch", "commit", "run"))


def _point_row(point: Mapping[str, Any]) -> dict[str, object]:
    return {
        "started (UTC)": moment(point["started_at"]),
        "run": point["run_uid"][:SHORT],
        "commit": (point["commit"] or "-")[:10],
        "torch": point["torch_version"],
        "IPEX": point["ipex_version"],
        **_numbers(point["unit"], median=point["median"], smallest=point["lo"], largest=point["hi"]),
        "launches": str(point["n"]),
        "ratio": ratio(point["ratio"]),
        "outcome": point["verdict"] or point["outcome"],
    }


def work_text(history: History, every: Iterable[Points]) -> str:
    """Name the runs from which on a case did other work: a level there says nothing of software."""
    lines = []
    for points in every:
        work = history.work(points[0]["case_uid"], points[0]["started_at"])
        known = [(point, work[point["run_uid"]]) for point in points if point["run_uid"] in work]
        for (_, before), (point, after) in pairwise(known):
            if text := structure.other_operations(before, after):
                since = f"{moment(point['started_at'])} {point['run_uid'][:SHORT]}"
                lines.append(f"{point['case_id']}: since {since} {text}")
    return "\n".join(lines)


def changes_table(changed: Sequence[Changed]) -> Columns:
    several = len({change.metric for change in changed}) > 1
    rows = (
        {
            "case": change.case_id,
            "change": change.direction if change.recovered_run is None else "recovered",
            "batch": change.batch,
            "metric": change.metric if several or change.metric != PRIMARY else None,
            **_numbers(change.unit, before=change.before, after=change.after),
            "ratio": ratio(change.ratio),
            "runs": f"{change.runs_before} -> {change.runs_after}",
            "last": f"{change.last_started_at[:10]} {change.last_run[:SHORT]}",
            "first": f"{change.first_started_at[:10]} {change.first_run[:SHORT]}",
        }
        for change in changed
    )
    return Columns(rows, spare=("runs", "batch", "last", "first"))


def brackets_text(changed: Changes) -> str:
    """Describe what differs between the runs around changes, once for all cases that changed there."""
    together: dict[tuple[str, str, str, tuple[str, ...]], list[Changed]] = defaultdict(list)
    lines, plain = [], 0
    for change in changed.changes:
        if change.commits or change.differences:
            together[change.last_run, change.first_run, change.likely_run, change.differences].append(change)
        else:
            plain += 1
        if change.recovered_run is not None and change.recovered_started_at is not None:
            when = moment(change.recovered_started_at)
            lines.append(
                f"{change.case_id}, {change.metric}: back at its level since {when} {change.recovered_run[:SHORT]}"
            )
    for (last, first, likely, differences), same in together.items():
        cases = ", ".join(dict.fromkeys(change.case_id for change in same))
        vague = f" (95 % sure, most likely with {likely[:SHORT]})" if same[0].between > 1 else ""
        lines.append(f"between {last[:SHORT]} and {first[:SHORT]}{vague}: {cases}")
        commits = same[0].commits
        lines += [f"    commits  {commits}"] if commits else []
        others = [line for line in differences if not line.startswith("commit: ")]
        lines += [f"    {'' if index else 'differs':8} {line}" for index, line in enumerate(others)]
    if plain:
        nothing = "nothing that is recorded of the environment differs between last and first"
        lines.append(f"{plural(plain, 'step')}: {nothing}")
    short = f"; {changed.short} too short: fewer than {2 * MINIMUM} good runs" if changed.short else ""
    unsteady = f"; {changed.unsteady} without a run to blame: drifting, or going to and fro" if changed.unsteady else ""
    lines.append(f"{plural(len(changed.changes), 'change')} in {changed.series} series{short}{unsteady}")
    return "\n".join(lines)


def comparison_text(comparison: RunComparison) -> str:
    """Describe the two runs, and the differences between their environments."""
    lines = []
    for name, run in (("first", comparison.first), ("second", comparison.second)):
        where = f"{(run.commit or '-')[:10]} on {run.branch or '-'}, torch {run.torch_version or '-'}"
        where += f", IPEX {run.ipex_version or '-'}, {run.machine_key}"
        lines.append(f"{name:8} {run.uid[:SHORT]}  {moment(run.started_at)} UTC, {where}")
    differences = comparison.differences or ("nothing that is recorded of the environment",)
    lines += [f"{'' if index else 'differs':8} {line}" for index, line in enumerate(differences)]
    return "\n".join(lines)


def compared_table(cases: Sequence[ComparedCase]) -> Columns:
    rows = (
        {
            "case": case.case_id,
            "batch": case.batch,
            **_numbers(case.unit, first=case.first, second=case.second),
            "ratio": ratio(case.ratio.value if case.ratio else None),
            "interval": interval(case.ratio),
            "change": case.change or "-",
            "accuracy": _both(
                share(case.accuracy_metric, side) for side in (case.first_accuracy, case.second_accuracy)
            ),
            "outcome": _both(side or "-" for side in (case.first_outcome, case.second_outcome)),
        }
        for case in cases
    )
    return Columns(rows, spare=("batch", "accuracy", "outcome", "interval"))


def _both(sides: Iterable[str]) -> str:
    first, second = sides
    return first if first == second else f"{first} -> {second}"


def differences_text(cases: Sequence[ComparedCase]) -> str:
    """What is to be said of each case, and what differs in it."""
    return remarks(
        (case.case_id, _of(case.batch), "; ".join(filter(None, (case.note, *case.differences)))) for case in cases
    )


def speedups_table(pairs: Sequence[Speedup]) -> Columns:
    rows = (
        {
            "case": pair.case_id,
            "batch": pair.batch,
            "over": pair.over,
            "metric": pair.metric,
            **_numbers(pair.unit, base=pair.base, value=pair.value),
            "speedup": "-" if pair.speedup is None else f"{pair.speedup.value:.2f}",
            "interval": interval(pair.speedup),
            "accuracy": _both(share(pair.accuracy_metric, side) for side in (pair.base_accuracy, pair.accuracy)),
        }
        for pair in pairs
    )
    return Columns(rows, spare=("batch", "metric", "accuracy", "base", "value"))


def notes_text(pairs: Sequence[Speedup]) -> str:
    """How far each speed-up can be trusted, or why there is none."""
    return remarks((pair.case_id, _of(pair.batch, pair.over), _note(pair)) for pair in pairs)


def _note(speedup: Speedup) -> str:
    rounds = plural(speedup.rounds, "round") if speedup.paired else ""
    unseen = "no difference seen" if speedup.speedup is not None and not speedup.seen else ""
    return "; ".join(filter(None, (rounds, speedup.note, unseen)))


def twins_text(twins: Iterable[Twin]) -> str:
    """Describe the ratios of twins, which show the noise, and what it means if one differs significantly."""
    return "\n".join(map(twin_text, twins))


def twin_text(twin: Twin) -> str:
    name = f"{twin.case.id}, {_of(twin.case.inputs.get('batch'), 'the same again')}"
    text = f"{name}: {twin.estimate.ratio(inverted=True).precise}, {plural(twin.estimate.rounds, 'round')}"
    return f"{text}: that is not noise: do not trust the ratios of its group" if twin.estimate.distrusted else text
