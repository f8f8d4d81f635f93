"""Lines for metrics beside speed that surely changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipexperf.report.lines import labelled, named
from ipexperf.report.units import amount, percent
from ipexperf.result import METRICS, Measurement, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WORDS = {"regressed": "WORSE", "improved": "better"}


def changed(verdict: Verdict) -> str:
    """How one metric changed: '+2.0 % (412 MiB -> 420 MiB)'."""
    unit = METRICS[verdict.metric].unit
    levels = verdict.level and f" ({amount(verdict.level.before, unit)} -> {amount(verdict.level.now, unit)})"
    return f"{percent(verdict.ratio or 1.0)}{levels or ''}"


def moved_lines(measurements: Sequence[Measurement], verdicts: Mapping[str, Verdict]) -> list[str]:
    """A line for each metric that became worse or better, with the cases in which it did."""
    cases: dict[tuple[str, str], list[str]] = {}
    for measurement in measurements:
        verdict = verdicts.get(measurement.case.uid)
        for other in verdict.others if verdict else ():
            if other.outcome in WORDS:
                cases.setdefault((other.outcome, other.metric), []).append(f"{measurement.case.id} {changed(other)}")
    lines = []
    for outcome, word in WORDS.items():
        for metric in METRICS:
            if names := cases.get((outcome, metric)):
                lines += labelled(f"{word} {metric} ({len(names)})", named(names))
    return lines
