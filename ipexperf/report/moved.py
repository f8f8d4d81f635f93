"""Metrics beside speed that changed beyond doubt: what moved, not what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipexperf.report.lines import labelled, named
from ipexperf.report.units import amount, percent
from ipexperf.result import METRICS, Measurement, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def changed(verdict: Verdict) -> str:
    """How one metric changed: '+2.0 % (412 MiB -> 420 MiB)'."""
    unit = METRICS[verdict.metric].unit
    levels = verdict.level and f" ({amount(verdict.level.before, unit)} -> {amount(verdict.level.now, unit)})"
    return f"{percent(verdict.ratio or 1.0)}{levels or ''}"


def moved_lines(measurements: Sequence[Measurement], verdicts: Mapping[str, Verdict]) -> list[str]:
    """A line for each metric that became worse or better, with the cases in which it did."""
    lines = []
    for word, outcome in (("WORSE", "regressed"), ("better", "improved")):
        for metric in METRICS:
            cases = list(_cases(measurements, verdicts, metric, outcome))
            if cases:
                lines += labelled(f"{word} {metric} ({len(cases)})", named(cases))
    return lines


def _cases(
    measurements: Sequence[Measurement], verdicts: Mapping[str, Verdict], metric: str, outcome: str
) -> Iterator[str]:
    for one in measurements:
        verdict = verdicts.get(one.case.uid)
        for other in verdict.others if verdict else ():
            if (other.metric, other.outcome) == (metric, outcome):
                yield f"{one.case.id} {changed(other)}"
