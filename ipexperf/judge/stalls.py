"""The mean step beside the typical one: what it leaves out, and how the two differ in a launch."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ipexperf.result import MEAN, Launch, Sample
from ipexperf.units import seconds
from ipexperf.verdict import Verdict

SPREADS, SHARE = 7.0, 0.03
"""A sample stalled if it is longer than the typical one by so many robust standard deviations, and by this share."""
ALIKE = 2.0
"""The stalls that may have a period are those of the median length, give or take this factor."""
REPEATED = 5
"""Least number of stalls that repeat an earlier one of their launch, for a period."""
REGULAR, NEAR = 0.9, 1.4
"""The share of the stalls that a period must fit, and the factor by which it may differ from the usual distance."""


def undisturbed(samples: Sequence[Sample]) -> list[float]:
    """The wall time of each sample, less what its threads waited for a core more than in a usual one.

    Only what makes a sample longer than the typical one is taken out. Threads that always wait for one another, because
    they outnumber the cores, are slow by themselves.
    """
    wall, delay = (
        statistics.median(values) for values in zip(*((sample.wall, sample.delay) for sample in samples), strict=True)
    )
    return [max(min(sample.wall, wall), sample.wall - max(0.0, sample.delay - delay)) for sample in samples]


def of_longest(samples: Sequence[Sample]) -> float:
    """The share of the mean of these samples that the longest alone adds to a typical one."""
    walls = undisturbed(samples)
    return (max(walls) - statistics.median(walls)) / sum(walls)


def explained(verdicts: Sequence[Verdict], launches: Sequence[Launch]) -> tuple[Verdict, ...]:
    """These verdicts of a case, that on a longer mean step with how it differs from the typical one."""
    return tuple(
        replace(verdict, reason=why)
        if verdict.metric == MEAN
        and verdict.outcome in ("regressed", "inconclusive")
        and (verdict.times or 0) > 1
        and (why := described(launches))
        else verdict
        for verdict in verdicts
    )


def described(launches: Sequence[Launch]) -> str:
    """`every 10th step takes 30 ms longer` where that is clear, else `the largest stall 31 ms`. Empty without any."""
    measured = [launch for launch in launches if launch.outcome == "ok" and launch.samples]
    stalls = [_stalls(launch) for launch in measured]
    stalled = [time for of_launch in stalls for time in of_launch.values()]
    if not stalled:
        return ""
    typical = statistics.median(stalled)
    near = typical / ALIKE, typical * ALIKE
    alike = [[at for at, longer in of_launch.items() if near[0] < longer < near[1]] for of_launch in stalls]
    steps = [list(_steps(launch, places)) for launch, places in zip(measured, alike, strict=True)]
    if period := _period(steps, sum(len(launch.samples) for launch in measured) / max(1, sum(map(len, alike)))):
        return f"every {_ordinal(period)} step takes {seconds(typical)} longer"
    return f"the largest stall {seconds(max(stalled))}"


def _stalls(launch: Launch) -> dict[int, float]:
    """The samples that stalled, with the seconds that all steps of each took longer than typical ones."""
    walls = undisturbed(launch.samples)
    typical = statistics.median(walls)
    spread = 1.4826 * statistics.median(abs(wall - typical) for wall in walls)
    least = max(SPREADS * spread, SHARE * typical)
    return {place: (wall - typical) * launch.block for place, wall in enumerate(walls) if wall - typical > least}


def extra_steps(launch: int) -> Iterator[int]:
    """How many more untimed steps begin each turn of the launch of this index: none or one, the same when asked again.

    Else a step that is slow every so often, such as every tenth, may be untimed in each turn of a process.
    """
    chance = random.Random(launch)  # noqa: S311 - no secret
    while True:
        yield chance.randrange(2)


def _steps(launch: Launch, places: Iterable[int]) -> Iterator[int]:
    """Which steps of the process these samples were, untimed ones included. None if that is not known.

    A sample may have more than one step, and turns that were dropped had steps too.
    """
    turns = max(1, int(launch.gate.get("turns", 1)))
    warm, (each, rest) = int(launch.gate.get("turn_warm", 0)), divmod(len(launch.samples), turns)
    if launch.block != 1 or rest or launch.gate.get("turns_dropped"):
        return
    more = extra_steps(launch.index) if warm else itertools.repeat(0)
    untimed = list(itertools.accumulate(warm + extra for extra in itertools.islice(more, turns)))
    yield from (place + untimed[place // each] for place in places)


def _period(launches: Sequence[Sequence[int]], usual: float) -> int | None:
    """The number of steps from stall to stall, near the usual one, that fits nearly all of those in each launch.

    What fits is not enough: where untimed steps hide every second stall, twice the number fits as well.
    """
    several = [steps for steps in launches if len(steps) > 1]
    least = max(REGULAR * sum(map(len, several)), len(several) + REPEATED)
    near = range(max(2, math.ceil(usual / NEAR)), math.floor(usual * NEAR) + 1)
    fit = [n for n in near if sum(max(Counter(step % n for step in steps).values()) for steps in several) >= least]
    return min(fit, key=lambda number: abs(number - usual), default=None)


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
