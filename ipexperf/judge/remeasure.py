"""Combine two measurements of a case. A case that looks slower is measured again before it is called regressed."""

from __future__ import annotations

from dataclasses import replace

from ipexperf.outcomes import has_numbers
from ipexperf.result import Measurement, Verdict


def together(first: Measurement, second: Measurement) -> Measurement:
    """Merge both measurements. The later launches continue the numbering."""
    begin = len(first.launches)
    later = (replace(launch, index=begin + number) for number, launch in enumerate(second.launches))
    launches = (*first.launches, *later)
    return replace(first, launches=launches, finished_at=second.finished_at, cut=first.cut or second.cut)


def settle(first: Verdict, second: Verdict) -> Verdict:
    """The verdict from two measurements. A case is regressed only if each measurement says so by itself."""
    if second.outcome == "regressed":
        return replace(second, reason=f"{second.reason}; measured twice in this run, {_percent(first)} at first")
    lead = f"it looked slower at first ({_percent(first)}) and was measured again after the other cases: "
    if not has_numbers(second.outcome):
        return replace(second, reason=lead + second.reason)
    return replace(second, outcome="inconclusive", reason=f"{lead}{second.outcome}: {second.reason}")


def never(first: Verdict) -> Verdict:
    """The verdict if the run ended before the second measurement: inconclusive."""
    text = f"it looked slower ({_percent(first)}), and the run ended before it was measured again: {first.reason}"
    return replace(first, outcome="inconclusive", reason=text)


def unsettled(verdict: Verdict) -> Verdict:
    """The verdict on a part of a measurement, which may not say `regressed` yet."""
    return never(verdict) if verdict.outcome == "regressed" else verdict


def _percent(verdict: Verdict) -> str:
    return "by an unknown share" if verdict.ratio is None else f"{100 * (verdict.ratio - 1):+.1f} %"
