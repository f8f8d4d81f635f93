"""Records as flat rows, one value a column: what CSV and pandas want."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from ipexperf.case import AXES
from ipexperf.history.records import Recorded, RunDetail, Summary

CASE = (*AXES, "batch")
SUMMARY = tuple(field.name for field in fields(Summary))
SHOWN = ("run_uid", "case_id", "case_uid", *CASE, *SUMMARY, "verdict", "ratio", "launches", "machine_key")
"""The columns of a run that is shown."""


def shown(detail: RunDetail) -> list[dict[str, Any]]:
    """Return one row a case and metric of a run, with the verdict beside the metric that it is about."""
    return [_row(recorded, summary) for recorded in detail.cases for summary in recorded.metrics.values()]


def _row(recorded: Recorded, summary: Summary) -> dict[str, Any]:
    own = recorded.verdict if recorded.verdict and recorded.verdict.metric == summary.metric else None
    return {
        "run_uid": recorded.run_uid,
        "case_id": recorded.case.id,
        "case_uid": recorded.case.uid,
        **{name: getattr(recorded.case, name) for name in CASE},
        **asdict(summary),
        "verdict": own.outcome if own else None,
        "ratio": own.ratio if own else None,
        "launches": len(recorded.counted),
        "machine_key": recorded.machine_key,
    }
