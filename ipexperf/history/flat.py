"""Records as flat rows with one value per column, for CSV and pandas."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from ipexperf.case import AXES
from ipexperf.history.records import Recorded, RunDetail, Summary, of_case

SUMMARY = tuple(field.name for field in fields(Summary))
SHOWN = ("run_uid", "case_id", "case_uid", *AXES, "batch", *SUMMARY, "verdict", "ratio", "launches", "machine_key")
"""Columns of `ipexperf show`."""


def rows(detail: RunDetail) -> list[dict[str, Any]]:
    """Return one row per case and metric of a run. Verdicts are in the rows of the metrics that were judged."""
    return [_row(recorded, summary) for recorded in detail.cases for summary in recorded.metrics.values()]


def _row(recorded: Recorded, summary: Summary) -> dict[str, Any]:
    judged = (recorded.verdict, *recorded.verdict.others) if recorded.verdict else ()
    verdict = next((other for other in judged if other.metric == summary.metric), None)
    return {
        "run_uid": recorded.run_uid,
        **of_case(recorded.case),
        **asdict(summary),
        "verdict": verdict.outcome if verdict else None,
        "ratio": verdict.ratio if verdict else None,
        "launches": len(recorded.counted),
        "machine_key": recorded.machine_key,
    }
