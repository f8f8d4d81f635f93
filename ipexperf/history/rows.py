"""Convert records to rows of tables and back. No SQL."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ipexperf.case import AXES, Case, from_json
from ipexperf.history.values import (
    content_uid,
    evidence_document,
    finite,
    now,
    pack,
    series_uid,
    storable,
    summary,
    utc,
)
from ipexperf.ratio import numbers
from ipexperf.result import METRICS, PRIMARY, Metric

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlalchemy import RowMapping

    from ipexperf.history.records import Accepted
    from ipexperf.judge.policy import Constants
from ipexperf.result import Launch, Measurement
from ipexperf.verdict import Verdict

# Time spent waiting for a core explains a sample but is never judged, so it is a series but not a metric.
_SAMPLED = {"step_time": "wall", "cpu_time": "cpu", "run_delay": "delay"}
CASE = ("test", *AXES, "batch", "version")
"""Columns that say what a case is, with NULL for what it lacks. Its other fields are in `params`."""
ELSEWHERE = ("git", "lock_text")
"""Parts of an environment that are not stored with it."""
_UNJUDGED = Metric("run_delay", "s", higher_is_better=False)


def environment_row(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of an environment, without the commit: otherwise every commit would be a new environment.

    The text of its lock has a row of its own.
    """
    stored = finite({key: value for key, value in document.items() if key not in ELSEWHERE})
    return {"uid": content_uid(stored), "machine_key": stored["machine_key"], "doc": stored}


def lock_row(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the row of an environment's lock, or None if it has none."""
    return {"uid": document["lock"], "text": document["lock_text"]} if document.get("lock_text") else None


def versions(environment: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the columns of a run that come from its environment."""
    software = environment.get("software") or {}
    git = environment.get("git") or {}
    return {
        "torch_version": software.get("torch"),
        "ipex_version": software.get("ipex"),
        "commit_sha": git.get("commit"),
        "branch": git.get("branch"),
    }


def case_row(case: Case, suite: str) -> dict[str, Any]:
    params = case.to_json()
    columns = {name: params.pop(name, None) for name in CASE}
    return {"uid": case.uid, "suite": suite, **columns, "params": params}


def case_of(row: RowMapping | Mapping[str, Any]) -> Case:
    return from_json({**{name: row[name] for name in CASE if row[name] is not None}, **row["params"]})


def series_row(case: Case, machine_key: str, name: str) -> dict[str, Any]:
    metric = _UNJUDGED if name == _UNJUDGED.name else METRICS[name]
    unit, higher = case.primary if name == PRIMARY else (metric.unit, metric.higher_is_better)
    return {
        "uid": series_uid(case.uid, machine_key, name),
        "machine_key": machine_key,
        "metric": name,
        "unit": unit,
        "higher_is_better": higher,
    }


def metric_rows(measurement: Measurement) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a row for every metric over its launches, and always one for the primary metric.

    The numbers are None if the measurement failed, if the metric is not finite, or if the case never began.
    """
    if measurement.never_began:
        yield PRIMARY, {"n": 0, **summary(()), "outcome": "interrupted", "reason": measurement.never_began}
        return
    outcome, reason = "ok", ""
    if measurement.failure:
        outcome, reason = "failed", measurement.failure
    elif measurement.invalid or measurement.contended:
        outcome, reason = "invalid", measurement.invalid or measurement.contended
    for metric in dict.fromkeys((*measurement.metrics, PRIMARY)):
        values = measurement.values(metric)
        metric_outcome = (outcome, reason)
        if bad := [value for value in values if not math.isfinite(value)]:
            metric_outcome = ("failed", reason or f"{metric} was {bad[0]} in {len(bad)} of {len(values)} launches")
        elif not values and outcome != "failed":
            metric_outcome = ("failed", reason or f"no launch measured {metric}")
        numbers = summary(() if metric_outcome[0] == "failed" else values, METRICS[metric].median)
        yield (
            metric,
            {
                "n": len(values) - len(bad),
                **numbers,
                "outcome": metric_outcome[0],
                "reason": storable(metric_outcome[1]),
            },
        )


def launch_row(measurement: Measurement, launch: Launch) -> dict[str, Any]:
    """Return the row of a launch, good or bad. Samples have a table of their own."""
    document = finite(
        {
            "started_at": utc(measurement.started_at),
            "finished_at": utc(measurement.finished_at),
            "block": launch.block,
            "metrics": launch.metrics,
            "gate": launch.gate,
            "proof": [asdict(check) for check in launch.proof],
            "accuracy": [asdict(check) for check in launch.accuracy],
            **({"answers": launch.answers} if launch.answers else {}),
            "contended": launch.contended,
            "notes": launch.notes,
            **({"fewer": launch.fewer} if launch.fewer else {}),
            **({"settings": launch.settings} if launch.settings else {}),
            **({"emulated": True} if launch.emulated else {}),
            "fingerprint": measurement.fingerprint(launch),
            "against": launch.against,
        }
    )
    texts = {name: storable(getattr(launch, name)) for name in ("outcome", "reason", "log")}
    return {"launch": launch.index, **texts, "doc": document}


def sample_blobs(launch: Launch) -> Iterator[tuple[str, bytes]]:
    """Yield the samples of a launch by series."""
    if launch.samples:
        for name, column in _SAMPLED.items():
            yield name, pack([getattr(sample, column) for sample in launch.samples])


def policy_row(verdict: Verdict, policy: Constants | None) -> dict[str, Any]:
    """Return the row of a policy with all its constants. An unknown policy has only a label."""
    if verdict.constants is not None:
        return {"uid": content_uid(verdict.constants), "doc": dict(verdict.constants)}
    document = {"policy": verdict.policy} if policy is None else policy.to_json()
    return {"uid": content_uid(document), "doc": document}


def policy_label(row: Any) -> str:
    """Return the label of a policy, as its verdicts have it."""
    return str(row.doc["policy"] if "policy" in row.doc else f"{row.doc['name']}@{row.uid[:12]}")


def baseline_row(accepted: Accepted) -> dict[str, Any]:
    document = {"accepted_at": utc(accepted.at), "accepted_by": accepted.by, "reason": accepted.reason}
    name = series_uid(accepted.case.uid, accepted.machine_key, PRIMARY)
    return {"uid": content_uid([name, accepted.run_uid, document]), **document}


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    bounds = numbers(verdict.ratio)
    values = finite({"ratio": bounds.pop("ratio"), "p_value": verdict.p_value, "mde": verdict.mde})
    reason: dict[str, Any] = {"text": verdict.reason, **bounds, "baseline": evidence_document(verdict.evidence)}
    reason["structure"] = asdict(verdict.structure) if verdict.structure else None
    reason |= {name: True for name in ("contended", "host_changed") if getattr(verdict, name)}
    if verdict.speed is not None:
        reason["speed"] = asdict(verdict.speed)
    if verdict.level is not None:
        reason["level"] = asdict(verdict.level)
    if verdict.bounds is not None:
        reason["bounds"] = verdict.bounds
    return {"outcome": verdict.outcome, **values, "reason": finite(reason), "judged_at": now()}
