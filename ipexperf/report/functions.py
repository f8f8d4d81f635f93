"""The summary of functions, or a program's numbers: which are slower or faster and why; the others by their times."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from ipexperf.case import Case, ProgramCase
from ipexperf.judge import growth
from ipexperf.judge.sentence import details, of_time, sentence
from ipexperf.proof import answers
from ipexperf.report.lines import Page, by_meaning, listed, shortened, wrapped
from ipexperf.report.summary import Judged
from ipexperf.result import PRIMARY, Measurement
from ipexperf.units import digits, plural, within

SHOWN = 20
"""Most functions of one kind to show. The history has all."""
REASONS = 3
"""Most reasons to show of one function."""
SHOWN_IN_ROWS = {
    "regressed": "slower",
    "worse": "worse, but not slower",
    "other": "with other results",
    "failed": "failed",
    "invalid": "not counted",
    "platform_shift": "moved with the whole run",
    "improved": "faster",
}
"""The outcomes of which it is said why, and the heading of each."""
IN_TABLES = {
    "not_comparable": "not comparable",
    "contended": "measured on a busy machine",
    "inconclusive": "not known",
    "no_baseline": "recorded, with no baseline yet",
    "ok": "not slower",
}
"""The others, whose times say all. The heading of each."""
OF_NUMBERS = {"regressed": "worse", "worse": "worse, but not in time", "improved": "better", "ok": "not worse"}
"""The headings where not all are times."""


def _headings(cases: Sequence[Judged]) -> dict[str, str]:
    numbers = any(isinstance(judged.case, ProgramCase) for judged in cases)
    return {**SHOWN_IN_ROWS, **IN_TABLES, **(OF_NUMBERS if numbers else {})}


def headline(cases: Sequence[Judged]) -> str:
    """How many functions there are of each kind. Empty without functions."""
    counts, headings = Counter(map(_kind, cases)), _headings(cases)
    kinds = [kind for kind in dict.fromkeys([*headings, *counts]) if counts[kind]]
    counted = ", ".join(f"{counts[kind]} {headings.get(kind, kind)}" for kind in kinds)
    text = "; ".join(dict.fromkeys(pairs.against for judged in cases if (pairs := judged.verdict.pairs)))
    nouns = {judged.case.noun for judged in cases}
    noun = nouns.pop() if len(nouns) == 1 else "case"
    return f"{plural(len(cases), noun)}{f' beside {text}' if text else ''}: {counted}" if cases else ""


def lines(cases: Sequence[Judged]) -> list[str]:
    """The whole summary: of functions, and of each program by itself, with what ran. Empty without functions."""
    of: dict[tuple[str, ...], list[Judged]] = {}
    for judged in cases:
        of.setdefault(_ran(judged.case), []).append(judged)
    return [line for ran, alike in of.items() for line in (*_lines(alike), *ran)]


def _ran(case: Case) -> tuple[str, ...]:
    """What ran, if it is a program: its command line and its server."""
    texts = [f"ran  {case.program}", *map("  ".join, case.settings)] if isinstance(case, ProgramCase) else []
    return tuple(row for text in texts for row in wrapped(text))


def _lines(cases: Sequence[Judged]) -> list[str]:
    """The summary of these alone."""
    rows = wrapped(headline(cases))
    for kind, heading in _headings(cases).items():
        of_kind = [judged for judged in cases if _kind(judged) == kind]
        if not of_kind:
            continue
        of_kind.sort(key=lambda judged: -abs(math.log(judged.verdict.times or 1.0)))
        if kind in IN_TABLES:
            step = of_kind[0].case.step
            between = "fastest to slowest launch" if step == "call" else "least to most"
            rows += [f"{heading}; a {step} ({between}):", *_table(of_kind[:SHOWN])]
        else:
            rows.append(f"{heading}:")
            for said, alike in itertools.groupby(of_kind[:SHOWN], key=_said):
                rows += [f"  {judged.case.name}" for judged in alike]  # never cut, because people copy them
                rows += said
        rows += [f"  and {len(of_kind) - SHOWN} more"] if len(of_kind) > SHOWN else []
    return [*rows, *_doubtful(cases)]


def _table(cases: Sequence[Judged]) -> list[str]:
    """The time a call of each of these functions, in the middle and at the ends of its launches, and how it changed."""
    rows = []
    for measurement, verdict in cases:
        times = measurement.values(PRIMARY)
        unit, higher = measurement.case.primary
        took = within(times, unit) if times else "-"
        rows.append((measurement.case.name, took, of_time(verdict, higher=higher) if verdict.ratio else ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    name_width = min(widths[0], Page.width - sum(widths[1:]) - 6)
    lines = []
    for name, took, change in rows:
        fits = len(name) <= name_width
        lines += [] if fits else [f"  {name}"]
        lines.append(f"  {(name if fits else ''):<{name_width}}  {took:<{widths[1]}}  {change}".rstrip())
    return lines


def _kind(judged: Judged) -> str:
    verdict = judged.verdict
    if judged.measurement.never_began:
        return "not measured"
    if verdict.kind == "invalid" and verdict.speed:
        return "other"
    return "worse" if verdict.outcome == "regressed" and not verdict.slower else verdict.kind


def _said(judged: Judged) -> list[str]:
    """What is said of a function below its name."""
    measurement, verdict = judged
    more = [*counts(measurement), *details(verdict)][:REASONS]
    return [line for part in (sentence(verdict), *more) for line in wrapped(shortened(part), "    ")]


def counts(measurement: Measurement) -> Iterator[str]:
    """How many calls of Python and operators a step had, where that is another number than before."""
    first = measurement.counted[0] if measurement.counted else None
    sides = [((side or {}).get("beside") or {}) for side in (first.against, first.fingerprint)] if first else [{}, {}]
    for section, name, words in (("python", "calls", "Python calls"), ("counts", "operators", "operators")):
        old, new = ((side.get(section) or {}).get(name) for side in sides)
        if old is not None and new is not None and old != new:
            yield f"{words} {old:,} -> {new:,}"


def _doubtful(cases: Sequence[Judged]) -> Iterator[str]:
    """Functions that were not measured, or whose numbers or results are not what they seem."""
    never = [(measurement.never_began, measurement.case.name) for measurement, _ in cases]
    yield from by_meaning("NOT MEASURED", ((shortened(reason), name) for reason, name in never if reason))
    meanings = [(meaning, judged.case.name) for judged in cases if (meaning := _not_compared(judged))]
    yield from by_meaning("RESULT NOT COMPARED", meanings)
    meaning = "its calls change what it works on: `pedantic` with a `setup` renews that"
    yield from listed("SLOWER AND SLOWER", meaning, slowing(cases))
    counted = [judged for judged in cases if _kind(judged) in IN_TABLES]  # the rows of others say it already
    answered = [(judged.case.name, pairs.answers) for judged in counted if (pairs := judged.verdict.pairs)]
    other = [f"{name} ({shortened(text)})" for name, text in answered if text]
    yield from listed("OTHER RESULTS", "what the function returned is not what it was", other)


def _not_compared(judged: Judged) -> str:
    """Why the function's results cannot be compared with those of others, or an empty text."""
    if pairs := judged.verdict.pairs:
        return pairs.uncompared
    return answers.uncompared(answers.common(launch.answers for launch in judged.measurement.counted))


def slowing(cases: Sequence[Judged]) -> list[str]:
    """The cases whose steps become slower and slower, such as those of a network that keeps what it has seen."""
    slowdowns = {measurement.case.name: growth.slowdown(measurement.counted) for measurement, _ in cases}
    return [f"{name} ({digits(times)} times)" for name, times in slowdowns.items() if times is not None]
