"""The summary of functions: which are slower, which are faster, by how much and why; the others in a line."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ipexperf.judge import growth
from ipexperf.report.lines import listed, shortened, wrapped
from ipexperf.report.moved import changed
from ipexperf.report.units import digits, interval, percent, plural, seconds
from ipexperf.result import MEAN, PRIMARY, Measurement, PairsEvidence, Verdict

SHOWN = 20
"""Most functions of one kind to show. The history has all."""
REASONS = 3
"""Most reasons to show of one function."""
TOLD = {
    "regressed": "slower",
    "worse": "worse, but not slower",
    "improved": "faster",
    "failed": "failed",
    "invalid": "wrong",
    "platform_shift": "moved with the whole run",
}
"""The outcomes of which each function is shown, and the heading of each."""
REST = {"ok": "not slower", "inconclusive": "not known", "no_baseline": "recorded, with no baseline yet"}
"""What the others are called where they are counted."""


def lines(measurements: Sequence[Measurement], verdicts: Mapping[str, Verdict]) -> list[str]:
    """The whole summary. Empty without functions."""
    if not measurements:
        return []
    judged = [(one, verdicts[one.case.uid]) for one in measurements]
    counts = Counter(_kind(one, verdict) for one, verdict in judged)
    told = [f"{count} {TOLD.get(kind, REST.get(kind, kind))}" for kind, count in counts.items()]
    text = "; ".join(dict.fromkeys(filter(None, (_against(verdict) for _, verdict in judged))))
    rows = wrapped(f"{plural(len(judged), 'function')}{f' beside {text}' if text else ''}: {', '.join(told)}")
    for outcome, heading in TOLD.items():
        of_kind = [(one, verdict) for one, verdict in judged if _kind(one, verdict) == outcome]
        of_kind.sort(key=lambda pair: -abs(math.log(pair[1].ratio or 1.0)))
        rows += [f"{heading}:"] if of_kind else []
        for one, verdict in of_kind[:SHOWN]:
            rows += _row(one, verdict)
        rows += [f"  and {len(of_kind) - SHOWN} more"] if len(of_kind) > SHOWN else []
    return [*rows, *_not_measured(measurements), *_doubtful(judged)]


def loud(measurement: Measurement, verdict: Verdict) -> bool:
    """Whether a function is worth a row of its own."""
    return not measurement.case.is_call or verdict.outcome in TOLD


def _kind(measurement: Measurement, verdict: Verdict) -> str:
    if measurement.never_began:
        return "not measured"
    speed = verdict.speed.outcome if verdict.speed else verdict.outcome
    slower = speed == "regressed" or any(x.metric == MEAN and x.outcome == "regressed" for x in verdict.others)
    return "worse" if verdict.outcome == "regressed" and not slower else verdict.outcome


def _against(verdict: Verdict) -> str:
    return verdict.evidence.against if isinstance(verdict.evidence, PairsEvidence) else ""


def _row(measurement: Measurement, verdict: Verdict) -> Iterator[str]:
    """A function in two lines or more. Its test is never cut, because people copy it."""
    figures = "" if verdict.ratio is None else percent(verdict.ratio)
    if verdict.lo is not None and verdict.hi is not None:
        figures += f" {interval(verdict.lo, verdict.hi)}"
    step = measurement.median(PRIMARY)
    figures += "" if step is None else f", {seconds(step)} a call"
    yield f"  {measurement.case.model}"
    reasons = list(_why(measurement, verdict))[:REASONS]
    text = shortened(verdict.reason) if verdict.outcome in ("failed", "invalid") else figures
    for part in [text, *reasons]:
        yield from (f"    {line}" for line in wrapped(part))


def _why(measurement: Measurement, verdict: Verdict) -> Iterator[str]:
    """What else than time is another: memory, calls of Python, operators, kernels."""
    yield from (f"{other.metric} {changed(other)}" for other in verdict.moved if other.metric != MEAN)
    first = measurement.counted[0] if measurement.counted else None
    sides = [((side or {}).get("beside") or {}) for side in (first.against, first.fingerprint)] if first else [{}, {}]
    for section, name, words in (("python", "calls", "Python calls"), ("counts", "operators", "operators")):
        old, new = ((side.get(section) or {}).get(name) for side in sides)
        if old is not None and new is not None and old != new:
            yield f"{words} {old:,} -> {new:,}"
    if verdict.structure is not None:
        yield from (shortened(text) for text in (*verdict.structure.losses, *verdict.structure.changes))


def _not_measured(measurements: Sequence[Measurement]) -> list[str]:
    """The functions that were not measured, by reason."""
    reasons: dict[str, list[str]] = {}
    for one in measurements:
        if one.never_began:
            reasons.setdefault(shortened(one.never_began), []).append(one.case.model)
    return [line for reason, names in reasons.items() for line in listed("NOT MEASURED", reason, names)]


def _doubtful(judged: Sequence[tuple[Measurement, Verdict]]) -> list[str]:
    """Functions whose numbers or results are not what they seem."""
    unknown: dict[str, list[str]] = {}
    for one, _ in judged:
        if kind := (one.answers or {}).get("unknown"):
            unknown.setdefault(kind, []).append(one.case.model)
    rows = [
        line
        for kind, names in unknown.items()
        for line in listed("RESULT NOT COMPARED", f"{kind} has no value that can be", names)
    ]
    slowing = {one.case.model: times for one, _ in judged if (times := growth.slowdown(one.counted)) is not None}
    texts = [f"{name} ({digits(times)} times)" for name, times in slowing.items()]
    rows += listed(
        "SLOWER AND SLOWER", "its calls change what it works on: `pedantic` with a `setup` renews that", texts
    )
    contended = [one.case.model for one, verdict in judged if verdict.contended]
    rows += listed("CONTENDED", "measured on a busy machine, so the numbers do not count", contended)
    pairs = [(one, verdict.evidence) for one, verdict in judged if isinstance(verdict.evidence, PairsEvidence)]
    other = [f"{one.case.model} ({evidence.answers})" for one, evidence in pairs if evidence.answers]
    return [*rows, *listed("OTHER RESULTS", "what the function returned is not what it was", other)]
