"""Find which of several equal hosts differs from the others, so that its machine is at fault and not the software.

The unit is a night: what the hosts measured of the same software at the same time. In each night a host's deviation is
the median, over the cases, of its log step time over the middle of all hosts. A host is odd for one of two reasons. Its
deviation moved at some night and stayed there, by more than deviations vary from night to night. Or it lies farther
from the others than they lie from one another (Rosner's generalised extreme Studentised deviate test): hosts always
differ a little.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from ipexperf.judge.ratios import Estimate, Ratio, Spread

LEAST_HOSTS = 4
"""With fewer hosts none can be called odd: a spread needs at least three others."""
ALPHA = 0.005
"""Rate at which any of several hosts that are alike may be called odd, for each of the two reasons."""
SMALLEST = 0.01
"""Smaller differences are ignored, however certain they are."""
SIDE = 3
"""Fewest nights before and after a move."""
NORMAL = 1.4826
"""The standard deviation of normal values over the median of their distances from the middle."""
MEDIAN_ERROR = 1.2533
"""Standard error of a median of normal values, in units of that of their mean."""
FLOOR = 0.001
"""Hosts are not assumed to be more alike than this, as a standard deviation of the log."""

State = Literal["slower", "faster", "usual", "few"]


@dataclass(frozen=True, slots=True)
class Sight:
    """The step time of one case on one host in one night."""

    night: str
    """Nights sort by their names."""
    host: str
    case: str
    seconds: float


@dataclass(frozen=True, slots=True)
class HostVerdict:
    """The verdict on one of several equal hosts."""

    host: str
    state: State
    """`few`: too few hosts to tell."""
    ratio: float
    """Its step times over those of the others. Above 1 is slower."""
    lo: float | None
    hi: float | None
    since: str
    """The first night of its present level."""
    nights: int
    """The nights of that level."""
    cases: int
    equals: int
    """How many other hosts there are."""
    course: tuple[float, ...] = ()
    """Its step times over the middle of all hosts, night by night."""


def deviations(sights: Sequence[Sight]) -> dict[str, dict[str, float]]:
    """The deviation of each host in each night: host -> night -> log ratio to the middle of all hosts."""
    by_case: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for sight in sights:
        by_case[sight.night, sight.case][sight.host].append(math.log(sight.seconds))
    apart: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (night, _), hosts in by_case.items():
        if len(hosts) < 2:
            continue
        levels = {host: statistics.median(values) for host, values in hosts.items()}
        middle = statistics.median(levels.values())
        for host, level in levels.items():
            apart[host][night].append(level - middle)
    return {
        host: {night: statistics.median(values) for night, values in sorted(nights.items())}
        for host, nights in apart.items()
    }


@dataclass(frozen=True, slots=True)
class _Level:
    """The current level of a host: the middle of its nights since it last changed, with its error."""

    place: float
    error: float
    since: str
    nights: int
    moved: float
    """By how much it moved then. 0: never."""


def _level(nights: Mapping[str, float], noise: _Noise) -> _Level:
    names, values = list(nights), list(nights.values())
    begin = _last_move(values, noise)
    latest = values[begin:]
    moved = statistics.median(latest) - statistics.median(values[:begin]) if begin else 0.0
    return _Level(statistics.median(latest), noise.of_median(len(latest)), names[begin], len(latest), moved)


@dataclass(frozen=True, slots=True)
class _Noise:
    """The variation of a host's deviation from night to night, the same for all hosts of a kind."""

    spread: float
    degrees: int
    alpha: float
    """The share of the alarm rate that each host has."""

    def of_median(self, count: int) -> float:
        """The standard error of the median of so many nights."""
        return MEDIAN_ERROR * self.spread / math.sqrt(count)


def _noise(apart: Mapping[str, Mapping[str, float]]) -> _Noise:
    """The noise of a usual host: an odd one, whose level moves, does not change the median of all.

    Around a host's own middle, or from one night to the next, whichever says more: deviations that stay for some nights
    differ little from one to the next.
    """
    spreads = []
    for nights in apart.values():
        values = list(nights.values())
        middle = statistics.median(values)
        around = NORMAL * statistics.median(abs(value - middle) for value in values)
        steps = [abs(b - a) for a, b in pairwise(values)]
        spreads.append(max(around, NORMAL * statistics.median(steps) / math.sqrt(2) if steps else 0.0))
    degrees = sum(len(nights) - 1 for nights in apart.values())
    return _Noise(max(statistics.median(spreads), FLOOR), max(degrees, 1), ALPHA / len(apart))


def _last_move(values: Sequence[float], noise: _Noise) -> int:
    """The first night after the last move, or 0 if there was none: each part is looked through for one more."""
    begin = 0
    while move := _move(values[begin:], noise):
        begin += move
    return begin


def _move(values: Sequence[float], noise: _Noise) -> int:
    """The index at which a level moved, or 0. The move must stand out from the noise at all divisions together."""
    from scipy.special import stdtrit

    divisions = range(SIDE, len(values) - SIDE + 1)
    if not divisions:
        return 0
    sizes = {
        place: abs(statistics.median(values[place:]) - statistics.median(values[:place]))
        / math.hypot(noise.of_median(place), noise.of_median(len(values) - place))
        for place in divisions
    }
    best = max(sizes, key=sizes.__getitem__)
    limit = float(stdtrit(noise.degrees, 1 - noise.alpha / (2 * len(divisions))))
    return best if sizes[best] > limit else 0


def judge(sights: Sequence[Sight]) -> list[HostVerdict]:
    """A verdict on each host, the oddest first. All hosts must be equal."""
    apart = deviations(sights)
    if not apart:
        return []
    noise = _noise(apart)
    levels = {host: _level(nights, noise) for host, nights in apart.items()}
    cases: dict[str, set[str]] = defaultdict(set)
    for verdict in sights:
        cases[verdict.host].add(verdict.case)
    odd = _odd(levels) if len(levels) >= LEAST_HOSTS else set()
    verdicts = []
    for host, level in levels.items():
        others = [other.place for name, other in levels.items() if name != host and (name not in odd or host in odd)]
        difference = level.place - (statistics.mean(others) if others else 0.0)
        ratio = _ratio(difference, level, others)
        state: State = "usual"
        if len(levels) < LEAST_HOSTS:
            state = "few"
        elif host in odd and abs(difference) >= SMALLEST:
            state = "slower" if difference > 0 else "faster"
        numbers = (ratio.ratio, ratio.lo, ratio.hi, level.since, level.nights, len(cases[host]), len(levels) - 1)
        course = tuple(math.exp(value) for value in apart[host].values())
        verdicts.append(HostVerdict(host, state, *numbers, course))
    return sorted(
        verdicts, key=lambda verdict: (verdict.state in ("usual", "few"), -abs(math.log(verdict.ratio)), verdict.host)
    )


def _odd(levels: Mapping[str, _Level]) -> set[str]:
    """The hosts that moved away from the middle, and those that lie apart."""
    places = {host: level.place for host, level in levels.items()}
    middle = statistics.median(places.values())
    moved = {
        host
        for host, level in levels.items()
        if abs(level.moved) >= SMALLEST and level.moved * (level.place - middle) > 0
    }
    return moved | _apart({host: place for host, place in places.items() if host not in moved})


def _apart(places: Mapping[str, float]) -> set[str]:
    """The hosts that lie apart from the others, by Rosner's test. Its steps share the rate of alarms."""
    from scipy.special import stdtrit

    rest, count_odd = dict(places), 0
    removed: list[str] = []
    most = max(1, (len(places) - 1) // 3)
    while len(rest) >= LEAST_HOSTS and len(removed) < most:
        middle = statistics.mean(rest.values())
        spread = max(statistics.stdev(rest.values()), FLOOR)
        host = max(rest, key=lambda name: abs(rest[name] - middle))
        count = len(rest)
        t = float(stdtrit(count - 2, 1 - ALPHA / (2 * count * most)))
        limit = (count - 1) * t / math.sqrt(count * (count - 2 + t * t))
        removed.append(host)
        if abs(rest.pop(host) - middle) / spread > limit:
            count_odd = len(removed)
    return set(removed[:count_odd])


def _ratio(difference: float, level: _Level, others: Sequence[float]) -> Ratio:
    """A host's ratio, with its 95 % interval: the others are a sample of what a host of this kind is like."""
    if len(others) < LEAST_HOSTS - 1:
        return Ratio(math.exp(difference))
    middle = max(statistics.stdev(others), FLOOR) / math.sqrt(len(others))
    spread = Spread(math.hypot(middle, level.error), len(others) - 1)
    return Estimate(difference, spread).ratio_within(0.025)
