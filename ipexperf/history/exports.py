"""One run in the form of pytest-benchmark. Failed and invalid cases are left out, because they have no numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

from ipexperf.case import Case
from ipexperf.errors import HistoryError
from ipexperf.history.records import Recorded, RunDetail
from ipexperf.judge import rounds
from ipexperf.outcomes import has_numbers
from ipexperf.result import PRIMARY, RoundRecord


def pytest_benchmark(detail: RunDetail) -> dict[str, Any]:
    """Export a run for pytest-benchmark. Its rounds are our launches: samples of one launch are not replicates."""
    from importlib.metadata import version

    environment = detail.environment
    git = environment.get("git") or {}
    hardware = environment.get("hardware") or {}
    searches = [search.to_json() for search in detail.bisections]
    return {
        **({"bisections": searches} if searches else {}),
        "machine_info": {
            "node": hardware.get("host"),
            "processor": detail.run.machine_key,
            "machine": detail.run.machine_key,
            "python_version": (environment.get("software") or {}).get("python"),
            "cpu": {"brand_raw": hardware.get("cpu"), "count": hardware.get("cores")},
        },
        "commit_info": {
            "id": detail.run.commit or "unknown",
            "time": None,
            "author_time": None,
            "dirty": bool(git.get("dirty")),
            "project": detail.run.meta.get("suite", ""),
            "branch": detail.run.branch or "(unknown)",
        },
        "benchmarks": [_benchmark(recorded, _paired(detail, recorded.case)) for recorded in _sound(detail)],
        "datetime": detail.run.started_at,
        "version": version("pytest-benchmark"),
    }


def _sound(detail: RunDetail) -> list[Recorded]:
    sound = [recorded for recorded in detail.cases if has_numbers(recorded.outcome) and recorded.values.get(PRIMARY)]
    if not sound:
        raise HistoryError(f"the run {detail.run.uid} has no case with numbers that count: there is nothing to export.")
    return sound


def _name(case: Case) -> str:
    """Return the id with the batch, because two batches of a case share the id. A function has its test's."""
    return f"{case.id}[{case.inputs['batch']}]" if case.inputs else case.name


def _paired(detail: RunDetail, case: Case) -> list[dict[str, Any]]:
    """Return the log ratio of a case to its base in each of its rounds, with the base's name under `over`."""
    ratios = []
    for record in detail.rounds:
        if (base := _base(record, case)) is None:
            continue
        named = {"round": record.uid, "over": _name(base), "turns": record.turns}
        ratios += [{**named, "log_ratio": value} for value in rounds.logs([record], base, case)]
    return ratios


def _base(record: RoundRecord, case: Case) -> Case | None:
    """The base of a case: the other arm of its pair, else the reference. None for the reference itself."""
    for other, seat in pairwise(record.seats):
        if seat.case == case and other.role == "against":
            return other.case
    base = next((seat for seat in record.seats if seat.role == "reference"), record.seats[0]).case
    return base if base != case else None


def _benchmark(recorded: Recorded, paired: list[dict[str, Any]]) -> dict[str, Any]:
    from pytest_benchmark.stats import Stats

    case = recorded.case
    stats: Any = cast("Any", Stats)()
    for value in recorded.values[PRIMARY]:
        stats.update(value)
    facts = {"case": case.to_json(), "verdict": recorded.outcome, "run": recorded.run_uid}
    return {
        "group": case.group,
        "name": _name(recorded.case),
        "fullname": _name(recorded.case),
        "params": None,
        "param": None,
        "extra_info": {**facts, **({"paired": paired} if paired else {}), **recorded.medians},
        "options": {},
        "stats": {**stats.as_dict(), "data": stats.data, "iterations": 1},
    }
