"""Tables of runs and cases for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from ipexperf.history.drawing import SHORT, human, moment, ratio, remarks, row, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.table import Table

    from ipexperf.history.records import Recorded, RunDetail, RunRecord

LOG_LINES = 5


def runs_table(runs: Iterable[RunRecord]) -> Table:
    names = ("run", "started (UTC)", "status", "branch", "commit", "torch", "IPEX", "machine", "cases")
    drawn = table(*names, spare=("machine", "IPEX", "branch", "status", "torch", "commit"))
    for run in runs:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in run.outcomes.items())
        versions = (run.torch_version or "-", run.ipex_version or "-")
        place = (run.branch or "-", (run.commit or "-")[:10])
        row(drawn, run.uid[:SHORT], moment(run.started_at), run.status, *place, *versions, run.machine_key, counts)
    return drawn


def run_text(detail: RunDetail) -> Text:
    """Describe a run in a few lines."""
    run = detail.run
    git = detail.environment.get("git") or {}
    lines = (
        ("run", run.uid),
        ("started", f"{moment(run.started_at)} UTC, {run.status}"),
        ("commit", f"{run.commit or '-'} on {run.branch or '-'}{_uncommitted(git)}"),
        ("stack", f"torch {run.torch_version or '-'}, IPEX {run.ipex_version or '-'}"),
        ("machine", run.machine_key),
        *((("settled", line),) if (line := run.settled.get("line")) else ()),
    )
    return Text("\n".join(f"{name:8} {value}" for name, value in lines))


def _uncommitted(git: Mapping[str, Any]) -> str:
    """The digest of changes that were not committed: two such runs of one commit may be of two programs."""
    return f" (dirty{': ' if 'changes' in git else ''}{git.get('changes', '')})" if git.get("dirty") else ""


def cases_table(cases: Iterable[Recorded]) -> Table:
    names = ("case", "batch", "step time", "lo", "hi", "throughput", "launches", "verdict", "ratio")
    drawn = table(*names, spare=("launches", "lo, hi", "batch", "throughput"))
    for recorded in cases:
        step, rate = recorded.metrics["step_time"], recorded.metrics.get("throughput")
        row(
            drawn,
            recorded.case.id,
            str(recorded.case.batch),
            *(human(value, "s") for value in (step.median, step.lo, step.hi)),
            f"{human(rate.median, rate.unit)} {rate.unit}" if rate and rate.median is not None else "-",
            str(len(recorded.counted)),
            recorded.outcome,
            ratio(recorded.verdict.ratio if recorded.verdict else None),
        )
    return drawn


def reasons_text(cases: Iterable[Recorded]) -> Text:
    """Why each case has its verdict: once for all that have the same reason."""
    return remarks(
        (
            one.case.id,
            f"batch {one.case.batch}",
            one.verdict.reason if one.verdict else one.metrics["step_time"].reason,
        )
        for one in cases
    )


def failures_text(cases: Iterable[Recorded]) -> Text:
    """List every failed launch with the last lines of its log, and the notes on the others."""
    lines = []
    for recorded in cases:
        for launch in recorded.launches:
            name = f"{recorded.case.id}, launch {launch.index}"
            lines += [f"{name} {note}" for note in launch.document.get("notes", ())]
            if launch.outcome == "contended":
                lines.append(f"{name}: contended: {launch.reason}; it was measured again, and does not count")
            elif launch.outcome != "ok":
                lines.append(f"{name}: {launch.outcome}: {launch.reason}")
                lines += [f"    {line}" for line in launch.log.splitlines()[-LOG_LINES:]]
    return Text("\n".join(lines))
