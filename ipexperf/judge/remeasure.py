"""Combine two measurements of a case. A case that looks slower is measured again before it is called regressed."""

from __future__ import annotations

from dataclasses import replace

from ipexperf.judge.metrics import combined
from ipexperf.outcomes import has_numbers
from ipexperf.result import PRIMARY, Measurement
from ipexperf.units import percent
from ipexperf.verdict import Verdict


def merged(first: Measurement, second: Measurement) -> Measurement:
    """Merge both measurements. The later launches continue the numbering."""
    begin = len(first.launches)
    later = (replace(launch, index=begin + number) for number, launch in enumerate(second.launches))
    launches = (*first.launches, *later)
    return replace(first, launches=launches, finished_at=second.finished_at, cut=first.cut or second.cut)


def settle(first: Verdict, second: Verdict, both: Verdict, *, gated: bool = True) -> Verdict:
    """The verdict from two measurements, and from both as one, whose launches the numbers are of.

    A metric regressed only if each measurement says so by itself.
    """
    for verdict in (second, both):
        if not has_numbers(verdict.outcome):
            return replace(verdict, reason=_lead(first) + verdict.reason)
    again, whole = ({verdict.metric: verdict for verdict in one.others} for one in (second, both))
    others = [
        _settled(verdict, again[verdict.metric], whole[verdict.metric])
        if verdict.metric in again
        else without_second(verdict)
        for verdict in first.others
    ]
    return combined(_settled(first.alone, second.alone, both.alone), others, gated=gated)


def _settled(first: Verdict, second: Verdict, both: Verdict) -> Verdict:
    """The verdict on one metric, with the numbers of all launches."""
    times = f"{_percent(first)} at first, {_percent(second)} the second time"
    if first.outcome != "regressed":
        if both.outcome != "regressed":
            return both
        reason = f"it looks {_worse(both)} over all launches, and did not at first ({times}): {both.reason}"
        return replace(both, outcome="inconclusive", reason=reason)
    if second.outcome == "regressed":
        return replace(both, outcome="regressed", reason=f"{both.reason}; measured twice in this run, {times}")
    reason = f"{_lead(first)}{second.outcome}: {second.reason}; {_percent(both)} over all launches"
    return replace(both, outcome="inconclusive", reason=reason)


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
    return "by an unknown share" if verdict.ratio is None else percent(verdict.ratio.value)
