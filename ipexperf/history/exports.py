"""One run in the forms of other tools. Failed and invalid cases are left out, because they have no numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any, cast

from ipexperf.case import Case
from ipexperf.errors import HistoryError
from ipexperf.history.records import Recorded, RunDetail
from ipexperf.judge import rounds
from ipexperf.judge.sentence import sentence
from ipexperf.outcomes import has_numbers
from ipexperf.ratio import numbers
from ipexperf.result import PRIMARY, RoundRecord
from ipexperf.verdict import Verdict


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


def pytorch(detail: RunDetail) -> list[dict[str, Any]]:
    """Export a run for PyTorch's benchmark database (version 3): a record for each metric of each case.

    What uploads it adds the repository, the workflow and the job. All values of `extra_info` are texts there.
    """
    run, environment = detail.run, detail.environment
    hardware, software = environment.get("hardware") or {}, environment.get("software") or {}
    card = hardware.get("accelerator") or {}
    runner = {
        "name": hardware.get("host") or "",
        "type": run.machine_key,
        "cpu_info": hardware.get("cpu") or "",
        "cpu_count": hardware.get("cores") or 0,
        **({"gpu_info": card["properties"], "gpu_count": 1} if card.get("properties") else {}),
    }
    versions = {name: software[name] for name in ("torch", "ipex") if software.get(name)}
    of_run = {
        "timestamp": int(datetime.fromisoformat(run.started_at).timestamp()),
        "schema_version": "v3",
        "name": run.meta.get("suite", ""),
        **({"head_branch": run.branch} if run.branch else {}),
        **({"head_sha": run.commit} if run.commit else {}),
        "runners": [runner],
        "dependencies": {name: {"version": version} for name, version in versions.items()},
    }
    return [{**of_run, **record} for recorded in _sound(detail) for record in _records(recorded)]


def _records(recorded: Recorded) -> Iterator[dict[str, Any]]:
    case = recorded.case
    axes, judged = case.axes, recorded.verdict
    every = {verdict.metric: verdict for verdict in (judged, *judged.others) if verdict} if judged else {}
    told = {"device": case.device, "case": case.id, "run": recorded.run_uid, "outcome": recorded.outcome}
    benchmark = {"name": "ipexperf", "mode": axes.get("mode", ""), "dtype": axes.get("dtype", "")}
    kind = "model" if "model" in axes else "function"
    model = {"name": axes.get("model", case.name), "type": kind, "backend": axes.get("stack", "")}
    for name, summary in recorded.metrics.items():
        if not (values := recorded.values.get(name)):
            continue
        direction = "unknown" if summary.higher_is_better is None else str(summary.higher_is_better).lower()
        yield {
            "benchmark": {**benchmark, "extra_info": {**told, **_texts(case.inputs)}},
            "model": model,
            "metric": {
                "name": name,
                "benchmark_values": list(values),
                "extra_info": {"unit": summary.unit, "higher_is_better": direction, **_judged(every.get(name))},
            },
        }


def _judged(verdict: Verdict | None) -> dict[str, str]:
    """The verdict on a metric with its interval, as texts."""
    if verdict is None:
        return {}
    bounds = {name: value for name, value in numbers(verdict.ratio).items() if value is not None}
    return {"verdict": verdict.outcome, "reason": sentence(verdict), **_texts(bounds)}


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}
