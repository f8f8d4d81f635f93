"""What each ablated knob is worth, and what a stack is worth over stock: lines below the table of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ipexperf.case import Case
from ipexperf.judge import ratios
from ipexperf.judge.policy import Policy
from ipexperf.report.units import digits
from ipexperf.result import PRIMARY, Measurement, Verdict

STOCK = "stock"
HEADING = "ratios of this run's launches, with intervals that hold together with 95 %:"
UNSOUND = "not told, for one of the two has no numbers that count"
SINGLE = "a single launch has no interval"

WIDE = 1e3
"""An interval whose ends are so far apart is no number that anybody should read."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two cases that differ in one thing: the words for it stand before and after the ratio."""

    case: Case
    first: Case
    second: Case
    metric: str
    before: str
    after: str
    nothing: str


def ratio_lines(
    measurements: Sequence[Measurement], verdicts: Mapping[str, Verdict], ablated: Sequence[str]
) -> list[str]:
    """A line for each case that was ablated, or that ran on stock as well; without one there is no heading either."""
    found = {x.case: x for x in measurements}
    pairs = [pair for case in found for pair in (*_ablations(case, ablated), *_over_stock(case))]
    pairs = [pair for pair in pairs if pair.first in found and pair.second in found]
    if not pairs:
        return []
    told: dict[Case, list[str]] = {}
    for pair in pairs:
        sides = found[pair.first], found[pair.second]
        first, second = (side.values(pair.metric) for side in sides)
        sound = first and second and all(ratios.sound(side, verdicts.get(side.case.uid)) for side in sides)
        # Every pair has its part of the alarm rate, told or not: which are sound is no reason to be less strict.
        ratio = ratios.compare(first, second, Policy(), len(pairs)) if sound else None
        told.setdefault(pair.case, []).append(_words(pair, ratio))
    return [HEADING, *(f"  {case.id}: {'; '.join(parts)}" for case, parts in told.items())]


def _ablations(case: Case, ablated: Sequence[str]) -> Iterator[Pair]:
    """The case without each of its knobs that was ablated is the whole one."""
    for name, value in case.knobs:
        if name in ablated:
            whole = replace(case, knobs=tuple(knob for knob in case.knobs if knob[0] != name))
            word = f"without {name}" if value == "off" else f"with {name}={value}"
            yield Pair(whole, whole, case, PRIMARY, word, "times the step time", "no share seen")


def _over_stock(case: Case) -> Iterator[Pair]:
    """The same case on stock: only where it has the same knobs, for else two things differ."""
    if case.stack != STOCK:
        other = replace(case, stack=STOCK)
        yield Pair(case, other, case, "throughput", f"{case.stack} over {STOCK}", "times", "no difference seen")


def _words(pair: Pair, ratio: ratios.Ratio | None) -> str:
    if ratio is None:
        return f"{pair.before} {UNSOUND}"
    told = f"{pair.before} {digits(ratio.ratio)} {pair.after}"
    if ratio.lo is None or ratio.hi is None:
        return f"{told}: {SINGLE}"
    told += (
        f" ({digits(ratio.lo)} to {digits(ratio.hi)})" if ratio.hi / ratio.lo < WIDE else " (too few launches to tell)"
    )
    return told if ratio.seen else f"{told}: {pair.nothing}"
