"""The history drawn for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from ipexperf.case import AXES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ipexperf.history.records import Point, Recorded, RunDetail, RunRecord

SHORT = 13
"""As much of a uid as tells the millisecond: enough to name a run."""
LOG_LINES = 5
_SCALES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")),
    "bytes": ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")),
}
_STYLES = {"regressed": "red", "failed": "red", "invalid": "red", "improved": "green", "ok": "green"}


def human(value: float | None, unit: str) -> str:
    """Write a number with four digits and the scale of its unit that suits it; a failure has none."""
    if value is None:
        return "-"
    scales = _SCALES.get(unit)
    if scales is None:
        return f"{value:.4g}"
    scale, name = next((x for x in scales if abs(value) >= x[0]), scales[-1])
    return f"{value / scale:.4g} {name}"


def runs_table(runs: Iterable[RunRecord]) -> Table:
    table = _table("run", "started (UTC)", "status", "branch", "commit", "torch", "IPEX", "machine", "cases")
    for run in runs:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in run.outcomes.items())
        versions = (run.torch_version or "-", run.ipex_version or "-")
        place = (run.branch or "-", (run.commit or "-")[:10])
        _row(table, run.uid[:SHORT], _moment(run.started_at), run.status, *place, *versions, run.machine_key, counts)
    return table


def run_text(detail: RunDetail) -> Text:
    """Say of a run in a few lines what it was."""
    run = detail.run
    git = detail.environment.get("git") or {}
    lines = (
        ("run", run.uid),
        ("started", f"{_moment(run.started_at)} UTC, {run.status}"),
        ("commit", f"{run.commit or '-'} on {run.branch or '-'}{' (dirty)' if git.get('dirty') else ''}"),
        ("stack", f"torch {run.torch_version or '-'}, IPEX {run.ipex_version or '-'}"),
        ("machine", run.machine_key),
        *((("settled", line),) if (line := run.meta.get("settled", {}).get("line")) else ()),
    )
    return Text("\n".join(f"{name:8} {value}" for name, value in lines))


def cases_table(cases: Iterable[Recorded]) -> Table:
    table = _table("case", "batch", "step time", "lo", "hi", "throughput", "launches", "verdict", "ratio", "why")
    for recorded in cases:
        step, rate = recorded.metrics["step_time"], recorded.metrics.get("throughput")
        ratio = recorded.verdict.ratio if recorded.verdict else None
        _row(
            table,
            recorded.case.id,
            str(recorded.case.batch),
            *(human(value, "s") for value in (step.median, step.lo, step.hi)),
            f"{human(rate.median, rate.unit)} {rate.unit}" if rate and rate.median is not None else "-",
            str(len(recorded.counted)),
            recorded.outcome,
            _ratio(ratio),
            recorded.verdict.reason if recorded.verdict else step.reason,
        )
    return table


def failures_text(cases: Iterable[Recorded]) -> Text:
    """Tell of every launch that did not end well, with the last lines that it wrote, and what was noted of others."""
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


def trend_table(points: Sequence[Point]) -> Table:
    table = _table(
        "case", "batch", "started (UTC)", "run", "commit", "torch", "IPEX", "median", "lo", "hi", "n", "ratio"
    )
    table.add_column("outcome")
    for point in sorted(points, key=lambda point: (_case_id(point), point.machine_key, point.case_uid)):
        _row(
            table,
            _case_id(point),
            str(point.batch),
            _moment(point.started_at),
            point.run_uid[:SHORT],
            (point.commit or "-")[:10],
            point.torch_version or "-",
            point.ipex_version or "-",
            *(human(value, point.unit) for value in (point.median, point.lo, point.hi)),
            str(point.n),
            _ratio(point.ratio),
            point.verdict or point.outcome,
        )
    return table


def _case_id(point: Point) -> str:
    return "-".join(getattr(point, axis) for axis in AXES) + point.knobs


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for column in columns:
        table.add_column(column)
    return table


def _row(table: Table, *cells: str) -> None:
    # Text, not str: what a worker said is not markup.
    table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in cells))


def _moment(text: str) -> str:
    return text[:19].replace("T", " ")


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}"
