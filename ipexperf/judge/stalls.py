"""The mean step beside the typical one: what it leaves out, and how the two differ in a launch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from ipexperf.result import MEAN, Launch, Sample, Verdict

SPREADS, SHARE = 7.0, 0.03
"""A sample stalled if it is longer than the typical one by so many robust standard deviations, and by this share."""
ALIKE = 2.0
"""The stalls that may have a period are those of the median length, give or take this factor."""
GAPS = 5
"""Least number of gaps between stalls that show a period."""
REGULAR, NEAR = 0.9, 1.4
"""The share of the gaps that must be multiples of it, and the factor by which it may differ from the usual number."""


def undisturbed(samples: Sequence[Sample]) -> list[float]:
    """The wall time of each sample, less what its threads waited for a core more than in a usual one.

    Only what makes a sample longer than the typical one is taken out. Threads that always wait for one another, because
    they outnumber the cores, are slow by themselves.
    """
    wall, delay = (statistics.median(values) for values in zip(*((x.wall, x.delay) for x in samples), strict=True))
    return [max(min(x.wall, wall), x.wall - max(0.0, x.delay - delay)) for x in samples]


def explained(verdicts: Sequence[Verdict], launches: Sequence[Launch]) -> tuple[Verdict, ...]:
    """These verdicts of a case, that on a longer mean step with how it differs from the typical one."""
    told = tuple(verdicts)
    for place, verdict in enumerate(told):
        longer = verdict.ratio is not None and verdict.ratio > 1 and verdict.outcome in ("regressed", "inconclusive")
        if verdict.metric == MEAN and longer and (why := described(launches)):
            told = (*told[:place], replace(verdict, reason=f"{verdict.reason}: {why}"), *told[place + 1 :])
    return told


def described(launches: Sequence[Launch]) -> str:
    """`every 10th step takes 30 ms longer` where that is clear, else `the largest stall 31 ms`. Empty without any."""
    measured = [launch for launch in launches if launch.outcome == "ok" and launch.samples]
    stalls = [_stalls(launch) for launch in measured]
    longer = [seconds for found in stalls for seconds in found.values()]
    if not longer:
        return ""
    typical = statistics.median(longer)
    alike = [[at for at, x in found.items() if typical / ALIKE < x < typical * ALIKE] for found in stalls]
    gaps = [b - a for launch, places in zip(measured, alike, strict=True) for a, b in pairwise(_steps(launch, places))]
    if period := _period(gaps, sum(len(launch.samples) for launch in measured) / max(1, sum(map(len, alike)))):
        return f"every {_ordinal(period)} step takes {_ms(typical)} longer"
    return f"the largest stall {_ms(max(longer))}"


def _stalls(launch: Launch) -> dict[int, float]:
    """The samples that stalled, with the seconds that all steps of each took longer than typical ones."""
    walls = undisturbed(launch.samples)
    typical = statistics.median(walls)
    spread = 1.4826 * statistics.median(abs(wall - typical) for wall in walls)
    least = max(SPREADS * spread, SHARE * typical)
    return {place: (wall - typical) * launch.block for place, wall in enumerate(walls) if wall - typical > least}


def _steps(launch: Launch, places: Iterable[int]) -> Iterator[int]:
    """Which steps of the process these samples were, untimed ones included. None if a sample has more than one step."""
    turns = max(1, int(launch.gate.get("turns", 1)))
    warm, each = int(launch.gate.get("turn_warm", 0)), len(launch.samples) // turns
    if launch.block == 1 and each:
        yield from (place + warm * (place // each) for place in places)


def _period(gaps: Sequence[int], usual: float) -> int | None:
    """The number of steps that nearly all gaps are multiples of, near the usual one from stall to stall. None: none is.

    Gaps alone do not tell it: where untimed steps hide every second stall, all are multiples of twice the number.
    """
    near = range(max(2, math.ceil(usual / NEAR)), math.floor(usual * NEAR) + 1) if len(gaps) >= GAPS else ()
    fit = [number for number in near if sum(gap % number == 0 for gap in gaps) >= REGULAR * len(gaps)]
    return min(fit, key=lambda number: abs(number - usual), default=None)


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"
