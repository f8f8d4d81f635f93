"""Combine two measurements of a case. A case that looks slower is measured again before it is called regressed."""

from __future__ import annotations

from dataclasses import replace

from ipexperf.judge.metrics import combined
from ipexperf.outcomes import has_numbers
from ipexperf.result import Measurement
from ipexperf.sentences import joined
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
            lead = f"it looked worse at first ({_percent(first)}) and was measured again after the other cases"
            return replace(verdict, reason=joined(lead, verdict.reason))
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
    if "regressed" not in (first.outcome, both.outcome):
        return both
    twice = first.outcome == second.outcome == "regressed"
    times = f"measured twice in this run: {_percent(first)} at first, {_percent(second)} the second time"
    return replace(both, outcome="regressed" if twice else "inconclusive", reason=joined(times, both.reason))


def without_second(first: Verdict, *, gated: bool = True) -> Verdict:
    """The verdict if the run ended before the second measurement: what looked regressed is inconclusive."""
    return combined(_undecided(first.alone), [_undecided(verdict) for verdict in first.others], gated=gated)


def _undecided(first: Verdict) -> Verdict:
    if first.outcome != "regressed":
        return first
    text = f"it looked worse ({_percent(first)}), and the run ended before it was measured again"
    return replace(first, outcome="inconclusive", reason=joined(text, first.reason))


def provisional(verdict: Verdict, *, gated: bool = True) -> Verdict:
    """The verdict while the measurement goes on: `inconclusive` in place of `regressed`."""
    return without_second(verdict, gated=gated) if verdict.outcome == "regressed" else verdict


def _percent(verdict: Verdict) -> str:
    return "by an unknown share" if verdict.ratio is None else percent(verdict.ratio.value)
