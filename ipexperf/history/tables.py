"""What people read of a history in a terminal: tables, and the lines around them."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rich.text import Text

from ipexperf.history.drawing import SHORT, Columns, human, interval, moment, ratio, remarks, share
from ipexperf.judge.levels import MINIMUM
from ipexperf.proof import structure
from ipexperf.redaction import without_numbers
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
OVER_LAUNCHES = (
    "Intervals are over launches, and hold together with 95 %. What a machine does from one session to the next is in "
    "none of them: `ipexperf ab` measures two stacks side by side."
)
OTHERS = "The others are over launches, and hold together with 95 %."
OVER_ROUNDS = (
    "{which} over rounds, in which both cases took turns: each holds with 95 % by itself. What another day, driver or "
    "reboot changes is in none of them."
)


def runs_table(runs: Iterable[RunRecord]) -> Columns:
    rows = (
        {
            "run": run.uid[:SHORT],
            "started (UTC)": moment(run.started_at),
            "status": run.status,
            "branch": run.branch or "-",
            "commit": (run.commit or "-")[:10],
            "torch": run.torch_version,
            "IPEX": run.ipex_version,
            "machine": run.machine_key,
            "cases": ", ".join(f"{count} {outcome}" for outcome, count in run.outcomes.items()),
        }
        for run in runs
    )
    return Columns(rows, spare=("machine", "IPEX", "branch", "status", "torch", "commit"))


def run_text(detail: RunDetail) -> Text:
    run = detail.run
    git = detail.environment.get("git") or {}
    lines = (
        ("run", run.uid),
        ("started", f"{moment(run.started_at)} UTC, {run.status}"),
        ("commit", f"{run.commit or '-'} on {run.branch or '-'}{_uncommitted(git)}"),
        *((("stack", f"torch {run.torch_version}, IPEX {run.ipex_version or '-'}"),) if run.torch_version else ()),
        ("machine", run.machine_key),
        *((("settled", line),) if (line := run.settled.get("line")) else ()),
    )
    return Text("\n".join(f"{name:8} {value}" for name, value in lines))


def _uncommitted(git: Mapping[str, Any]) -> str:
    """The digest of changes that were not committed: two such runs of one commit may be of two programs."""
    return f" (dirty{': ' if 'changes' in git else ''}{git.get('changes', '')})" if git.get("dirty") else ""


def cases_table(cases: Iterable[Recorded]) -> Columns:
    return Columns(map(_case_row, cases), spare=("launches", "lo, hi", "batch", "throughput"))


def _case_row(recorded: Recorded) -> dict[str, object]:
    step, case = recorded.metrics["step_time"], recorded.case
    rate = recorded.metrics.get("throughput") if case.inputs else None
    speed = f"{human(rate.median, rate.unit)} {rate.unit}" if rate and rate.median is not None else "-"
    return {
        "case": case.name,
        "batch": case.inputs.get("batch"),
        "step time": human(step.median, "s"),
        "lo": human(step.lo, "s"),
        "hi": human(step.hi, "s"),
        "throughput": speed if case.inputs else None,
        "launches": str(len(recorded.counted)),
        "verdict": recorded.outcome,
        "ratio": ratio(recorded.verdict.times if recorded.verdict else None),
    }


def _of(batch: int | None, *more: str) -> str:
    """What a row is of besides its case. A function has no batch."""
    return ", ".join([*([] if batch is None else [f"batch {batch}"]), *more])


def reasons_text(cases: Iterable[Recorded]) -> Text:
    """Why each case has its verdict: once for all that have the same reason."""
    return remarks(
        (
            recorded.case.name,
            _of(recorded.case.inputs.get("batch")),
            recorded.verdict.reason if recorded.verdict else recorded.metrics["step_time"].reason,
        )
        for recorded in cases
    )


def failures_text(cases: Iterable[Recorded]) -> Text:
    """List every failed launch with the last lines of its log, and the notes on the others."""
    lines, notes = [], []
    for recorded in cases:
        for launch in recorded.launches:
            name = f"{recorded.case.name}, launch {launch.index}"
            notes += [(recorded.case.name, f"launch {launch.index}", note) for note in launch.document.get("notes", ())]
            if launch.outcome == "contended":
                lines.append(f"{name}: contended: {launch.reason}; it was measured again, and does not count")
            elif launch.outcome != "ok":
                lines.append(f"{name}: {launch.outcome}: {launch.reason}")
                lines += [f"    {line}" for line in launch.log.splitlines()[-LOG_LINES:]]
    return Text("\n").join(filter(None, (remarks(notes, without_numbers), Text("\n".join(lines)))))


def series_tables(every: Iterable[Points]) -> Iterator[tuple[Text, Columns]]:
    """One table for each series, and the line above it that says whose it is."""
    for points in every:
        newest = points[-1]
        name = f"{newest['case_id']}, {_of(newest['batch'], newest['metric'])} on {newest['machine_key']}"
        rows = map(_point_row, points)
        yield Text(name), Columns(rows, spare=("n", "lo, hi", "IPEX", "torch", "commit", "run"))


def _point_row(point: Mapping[str, Any]) -> dict[str, object]:
    return {
        "started (UTC)": moment(point["started_at"]),
        "run": point["run_uid"][:SHORT],
        "commit": (point["commit"] or "-")[:10],
        "torch": point["torch_version"],
        "IPEX": point["ipex_version"],
        **{name: human(point[name], point["unit"]) for name in ("median", "lo", "hi")},
        "n": str(point["n"]),
        "ratio": ratio(point["ratio"]),
        "outcome": point["verdict"] or point["outcome"],
    }


def work_text(history: History, every: Iterable[Points]) -> Text:
    """Name the runs from which on a case did other work: a level there says nothing of software."""
    lines = []
    for points in every:
        work = history.work(points[0]["case_uid"], points[0]["started_at"])
        known = [(point, work[point["run_uid"]]) for point in points if point["run_uid"] in work]
        for (_, before), (point, after) in pairwise(known):
            if text := structure.other_operations(before, after):
                since = f"{moment(point['started_at'])} {point['run_uid'][:SHORT]}"
                lines.append(f"{point['case_id']}: since {since} {text}")
    return Text("\n".join(lines))


def changes_table(changed: Sequence[Changed]) -> Columns:
    rows = (
        {
            "case": change.case_id,
            "change": change.direction if change.recovered_run is None else "recovered",
            "batch": change.batch,
            "metric": change.metric,
            "before": human(change.before, change.unit),
            "after": human(change.after, change.unit),
            "ratio": ratio(change.ratio),
            "score": f"{change.score:.1f}",
            "runs": f"{change.runs_before} -> {change.runs_after}",
            "last": f"{moment(change.last_started_at)} {change.last_run[:SHORT]}",
            "first": f"{moment(change.first_started_at)} {change.first_run[:SHORT]}",
            "known": f"{moment(change.known_started_at)} {change.known_run[:SHORT]}",
        }
        for change in changed
    )
    return Columns(rows, spare=("score", "known", "batch", "runs", "before, after", "metric", "last, first"))


def brackets_text(changed: Changes) -> Text:
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
    return Text("\n".join(lines))


def comparison_text(comparison: RunComparison) -> Text:
    """Describe the two runs, and the differences between their environments."""
    lines = []
    for name, run in (("first", comparison.first), ("second", comparison.second)):
        where = f"{(run.commit or '-')[:10]} on {run.branch or '-'}, torch {run.torch_version or '-'}"
        where += f", IPEX {run.ipex_version or '-'}, {run.machine_key}"
        lines.append(f"{name:8} {run.uid[:SHORT]}  {moment(run.started_at)} UTC, {where}")
    differences = comparison.differences or ("nothing that is recorded of the environment",)
    lines += [f"{'' if index else 'differs':8} {line}" for index, line in enumerate(differences)]
    return Text("\n".join(lines))


def compared_table(cases: Sequence[ComparedCase]) -> Columns:
    rows = (
        {
            "case": case.case_id,
            "batch": case.batch,
            "first": human(case.first, case.unit),
            "second": human(case.second, case.unit),
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
    return Columns(rows, spare=("batch", "accuracy", "outcome", "first, second", "change"))


def _both(sides: Iterable[str]) -> str:
    first, second = sides
    return first if first == second else f"{first} -> {second}"


def differences_text(cases: Sequence[ComparedCase]) -> Text:
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
            "base": human(pair.base, pair.unit),
            "value": human(pair.value, pair.unit),
            "speedup": "-" if pair.speedup is None else f"{pair.speedup.value:.2f}",
            "interval": interval(pair.speedup),
            "accuracy": _both(share(pair.accuracy_metric, side) for side in (pair.base_accuracy, pair.accuracy)),
        }
        for pair in pairs
    )
    return Columns(rows, spare=("batch", "accuracy", "base, value", "metric"))


def notes_text(pairs: Sequence[Speedup]) -> Text:
    """How far each speed-up can be trusted, or why there is none."""
    return remarks((pair.case_id, _of(pair.batch, pair.over), "; ".join(_notes(pair))) for pair in pairs)


def _notes(speedup: Speedup) -> Iterator[str]:
    if speedup.paired:
        yield plural(speedup.rounds, "round")
    if speedup.note:
        yield speedup.note
    if speedup.speedup is not None and not speedup.seen:
        yield "no difference seen"


def explanation(ratios: Sequence[Speedup]) -> str:
    """Explain the intervals: over rounds if the cases took turns, else over launches."""
    paired = [speedup.paired for speedup in ratios if speedup.speedup is not None]
    if not any(paired):
        return OVER_LAUNCHES
    if all(paired):
        return OVER_ROUNDS.format(which="Intervals are")
    return f"{OVER_ROUNDS.format(which='Where the note names rounds, intervals are')} {OTHERS}"


def twins_text(twins: Iterable[Twin]) -> Text:
    """Describe the ratios of twins, which show the noise."""
    return Text("\n".join(twin_text(twin) for twin in twins))


def twin_text(twin: Twin) -> str:
    """Describe one twin, and what it means if it differs significantly."""
    name = f"{twin.case.id}, {_of(twin.case.inputs.get('batch'), 'the same again')}"
    text = f"{name}: {twin.estimate.ratio(inverted=True).precise}, {plural(twin.estimate.rounds, 'round')}"
    if twin.estimate.distrusted:
        text += ": that is not noise: do not trust the ratios of its group"
    return text
