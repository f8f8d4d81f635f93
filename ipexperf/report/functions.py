"""The summary of functions: which are slower, which are faster, by how much and why; the others in a line."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from ipexperf.judge import answers, growth
from ipexperf.outcomes import OUTCOMES
from ipexperf.report.lines import BUSY, by_meaning, listed, shortened, wrapped
from ipexperf.report.moved import findings, of_time
from ipexperf.report.summary import Judged
from ipexperf.result import PRIMARY
from ipexperf.units import digits, plural, seconds

SHOWN = 20
"""Most functions of one kind to show. The history has all."""
REASONS = 3
"""Most reasons to show of one function."""
TOLD = {
    "regressed": "slower",
    "worse": "worse, but not slower",
    "other": "with other results",
    "improved": "faster",
    "failed": "failed",
    "invalid": "not counted",
    "platform_shift": "moved with the whole run",
}
"""The outcomes of which each function is shown, and the heading of each."""
REST = {"ok": "not slower", "inconclusive": "not known", "no_baseline": "recorded, with no baseline yet"}
REST |= {"contended": "measured on a busy machine"}
"""What the others are called where they are counted."""


def lines(judged: Sequence[Judged]) -> list[str]:
    """The whole summary. Empty without functions."""
    if not judged:
        return []
    counts = Counter(map(_kind, judged))
    told = [f"{count} {TOLD.get(kind, REST.get(kind, kind))}" for kind, count in counts.items()]
    text = "; ".join(dict.fromkeys(pairs.against for one in judged if (pairs := one.verdict.pairs)))
    rows = wrapped(f"{plural(len(judged), 'function')}{f' beside {text}' if text else ''}: {', '.join(told)}")
    for outcome, heading in TOLD.items():
        of_kind = [one for one in judged if _kind(one) == outcome]
        of_kind.sort(key=lambda one: -abs(math.log(one.verdict.times or 1.0)))
        rows += [f"{heading}:"] if of_kind else []
        for details, alike in itertools.groupby(of_kind[:SHOWN], key=_details):
            rows += [f"  {one.measurement.case.model}" for one in alike]  # never cut, because people copy them
            rows += details
        rows += [f"  and {len(of_kind) - SHOWN} more"] if len(of_kind) > SHOWN else []
    return [*rows, *_doubtful(judged)]


def loud(one: Judged) -> bool:
    """Whether a function is worth a row of its own."""
    return _kind(one) in TOLD


def _kind(one: Judged) -> str:
    verdict = one.verdict
    if one.measurement.never_began:
        return "not measured"
    if verdict.contended or (verdict.outcome == "invalid" and verdict.speed):
        return "contended" if verdict.contended else "other"
    return "worse" if verdict.outcome == "regressed" and not verdict.slower else verdict.outcome


def _details(one: Judged) -> list[str]:
    """What is said of a function below its name."""
    measurement, verdict = one
    step = measurement.median(PRIMARY)
    told = [shortened(verdict.reason)] if verdict.outcome in ("failed", "invalid") else []
    if not told or verdict.speed:
        first, *others = findings(verdict)
        told = [first if step is None else f"{first}, {seconds(step)} a call", *others, *told]
    return [f"    {line}" for part in [*told, *list(_why(one))[:REASONS]] for line in wrapped(part)]


def _why(one: Judged) -> Iterator[str]:
    """What else than time is another: memory, calls of Python, operators, kernels."""
    measurement, verdict = one
    first = measurement.counted[0] if measurement.counted else None
    sides = [((side or {}).get("beside") or {}) for side in (first.against, first.fingerprint)] if first else [{}, {}]
    for section, name, words in (("python", "calls", "Python calls"), ("counts", "operators", "operators")):
        old, new = ((side.get(section) or {}).get(name) for side in sides)
        if old is not None and new is not None and old != new:
            yield f"{words} {old:,} -> {new:,}"
    if verdict.structure is not None:
        yield from (shortened(text) for text in (*verdict.structure.losses, *verdict.structure.changes))


def _doubtful(judged: Sequence[Judged]) -> Iterator[str]:
    """Functions that were not measured, or whose numbers or results are not what they seem."""
    never = [(one.measurement.never_began, one.case.name) for one in judged if one.measurement.never_began]
    yield from by_meaning("NOT MEASURED", ((shortened(reason), name) for reason, name in never))
    meanings = [(meaning, one.case.name) for one in judged if (meaning := _not_compared(one))]
    yield from by_meaning("RESULT NOT COMPARED", meanings)
    meaning = "its calls change what it works on: `pedantic` with a `setup` renews that"
    yield from listed("SLOWER AND SLOWER", meaning, slowing(judged))
    doubt = [f"{one.case.name} {of_time(one.verdict)}" for one in judged if _kind(one) == "inconclusive"]
    yield from listed("NOT KNOWN", OUTCOMES["inconclusive"].meaning, doubt)
    yield from listed("CONTENDED", BUSY, [one.case.name for one in judged if one.verdict.contended])
    counted = [one for one in judged if one.verdict.outcome != "invalid"]  # whose rows say it already
    answered = [(one, pairs.answers) for one in counted if (pairs := one.verdict.pairs) and pairs.answers]
    other = [f"{one.case.name} ({shortened(text)})" for one, text in answered]
    yield from listed("OTHER RESULTS", "what the function returned is not what it was", other)


def _not_compared(one: Judged) -> str:
    """Why the function's results cannot be compared with those of others, or an empty text."""
    if pairs := one.verdict.pairs:
        return pairs.uncompared
    return answers.uncompared(answers.common(launch.answers for launch in one.measurement.counted))


def slowing(judged: Sequence[Judged]) -> list[str]:
    """The cases whose steps become slower and slower, such as those of a network that keeps what it has seen."""
    found = {one.case.name: times for one in judged if (times := growth.slowdown(one.measurement.counted)) is not None}
    return [f"{name} ({digits(times)} times)" for name, times in found.items()]
