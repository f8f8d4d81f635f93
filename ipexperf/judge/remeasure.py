"""Combine two measurements of a case. A case that looks slower is measured again before it is called regressed."""

from __future__ import annotations

from dataclasses import replace

from ipexperf.judge.metrics import combined
from ipexperf.outcomes import has_numbers
from ipexperf.result import PRIMARY, Measurement, Verdict


def merged(first: Measurement, second: Measurement) -> Measurement:
    """Merge both measurements. The later launches continue the numbering."""
    begin = len(first.launches)
    later = (replace(launch, index=begin + number) for number, launch in enumerate(second.launches))
    launches = (*first.launches, *later)
    return replace(first, launches=launches, finished_at=second.finished_at, cut=first.cut or second.cut)


def settle(first: Verdict, second: Verdict, *, gated: bool = True) -> Verdict:
    """The verdict from two measurements. A metric regressed only if each measurement says so by itself."""
    if not has_numbers(second.outcome):
        return replace(second, reason=_lead(first) + second.reason)
    again = {verdict.metric: verdict for verdict in second.others}
    others = [
        _settled(verdict, again[verdict.metric]) if verdict.metric in again else without_second(verdict)
        for verdict in first.others
    ]
    return combined(_settled(first.alone, second.alone), others, gated=gated)


def _settled(first: Verdict, second: Verdict) -> Verdict:
    """The verdict on one metric. The first one stays unless it was `regressed`."""
    if first.outcome != "regressed":
        return first
    if second.outcome == "regressed":
        return replace(second, reason=f"{second.reason}; measured twice in this run, {_percent(first)} at first")
    return replace(second, outcome="inconclusive", reason=f"{_lead(first)}{second.outcome}: {second.reason}")


def without_second(first: Verdict, *, gated: bool = True) -> Verdict:
    """The verdict if the run ended before the second measurement: what looked regressed is inconclusive."""
    return combined(_undecided(first.alone), [_undecided(verdict) for verdict in first.others], gated=gated)


def _undecided(first: Verdict) -> Verdict:
    if first.outcome != "regressed":
        return first
    text = (
        f"it looked {_worse(first)} ({_percent(first)}), and the run ended before it was measured again: {first.reason}"
    )
    return replace(first, outcome="inconclusive", reason=text)


def _lead(first: Verdict) -> str:
    return f"it looked {_worse(first)} at first ({_percent(first)}) and was measured again after the other cases: "


def _worse(verdict: Verdict) -> str:
    return "slower" if verdict.metric == PRIMARY else "worse"


def provisional(verdict: Verdict, *, gated: bool = True) -> Verdict:
    """The verdict while the measurement goes on: `inconclusive` in place of `regressed`."""
    return without_second(verdict, gated=gated) if verdict.outcome == "regressed" else verdict


def _percent(verdict: Verdict) -> str:
    return "by an unknown share" if verdict.ratio is None else f"{100 * (verdict.ratio - 1):+.1f} %"
