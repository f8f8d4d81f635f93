"""The ratio of two arms of a round, and of many rounds: the round is the unit."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ipexperf.case import Case
from ipexperf.judge.ratios import WIDEST, Ratio
from ipexperf.judge.spread import Spread
from ipexperf.result import RoundRecord, SeatRecord


def log_ratio(base: Sequence[Sequence[float]], other: Sequence[Sequence[float]], *, paired: bool) -> float:
    """The log of how many times slower `other` is in one round: above 0 where it is slower.

    Each has one part for each of its processes. Turns of one place in two parts were neighbours where they are
    `paired`, and then only their ratios count. A turn that took no time above 0 s makes it no number.
    """
    if len(base) != len(other) or not base:
        raise ValueError(f"expected as many processes of both arms, at least one; got {len(base)} and {len(other)}")
    return statistics.fmean(_part(a, b, paired=paired) for a, b in zip(base, other, strict=True))


def _part(base: Sequence[float], other: Sequence[float], *, paired: bool) -> float:
    if not base or not other or (paired and len(base) != len(other)):
        raise ValueError(f"expected as many turns of both arms, at least one; got {len(base)} and {len(other)}")
    if not all(0 < time < math.inf for time in (*base, *other)):
        return math.nan
    if paired:
        return statistics.median(math.log(b) - math.log(a) for a, b in zip(base, other, strict=True))
    return statistics.median(map(math.log, other)) - statistics.median(map(math.log, base))


def precision(base: Sequence[float], other: Sequence[float]) -> float:
    """The standard error of the log ratio of neighbouring turns, from their median absolute deviation."""
    logs = [math.log(b) - math.log(a) for a, b in zip(base, other, strict=True) if a > 0 and b > 0]
    if len(logs) < 2:
        return math.inf
    middle = statistics.median(logs)
    spread = 1.4826 * statistics.median(abs(x - middle) for x in logs)
    # A median is 1.25 times as uncertain as a mean.
    return 1.2533 * spread / math.sqrt(len(logs))


@dataclass(frozen=True, slots=True)
class Pool:
    """How much a log ratio usually differs from round to round, and how many degrees of freedom that is worth."""

    scale: float
    freedom: float


PRIOR = Pool(0.025, 2.0)
"""What is taken for usual before anything was measured: pairs on shared virtual machines spread by 1.5 to 4 %."""
TRUST = 6.0
"""What is usual counts for so many degrees of freedom in the spread of one ratio at most: arms are not all alike."""
EARLIER = 6.0
"""So many degrees of freedom are earlier runs of a machine worth at most: today may be another day."""
FLOOR = 0.001
"""No ratio is believed to spread by less than this from round to round, however alike a few rounds are."""
CONFIDENCE = 0.95
"""Of each interval by itself."""
DISTRUST = 0.005
"""A twin that differs from its reference with a p-value below this says that the ratios of its group are off."""


def logs(rounds: Iterable[RoundRecord], base: Case, case: Case) -> list[float]:
    """The log of how many times slower a case is than its base, one number for each round that had both."""
    found = []
    for one in rounds:
        first, second = _seat(one, base), _seat(one, case)
        if first is not None and second is not None:
            found.append(log_ratio(first.times, second.times, paired=one.schedule == "together"))
    return [value for value in found if math.isfinite(value)]


def twin_logs(rounds: Iterable[RoundRecord], case: Case) -> list[float]:
    """The log of how many times slower the twin of a case is, one number for each round that had it."""
    found = []
    for one in rounds:
        twin = next((seat for seat in one.seats if seat.role == "twin" and seat.case == case), None)
        base = _seat(one, case)
        if twin is not None and base is not None:
            found.append(log_ratio(base.times, twin.times, paired=one.schedule == "together"))
    return [value for value in found if math.isfinite(value)]


def _seat(one: RoundRecord, case: Case) -> SeatRecord | None:
    """The arm of a case in a round: its launch, or its seat as the reference of a part of the group."""
    seats = [seat for seat in one.seats if seat.case == case and seat.role != "twin"]
    return min(seats, key=lambda seat: seat.role != "case", default=None)


def usual(rounds: Sequence[RoundRecord], prior: Pool = PRIOR) -> Pool:
    """What is usual for the ratios of these rounds, with what was known before.

    What a round did to all of its arms, and what an arm is in all rounds, is taken out: what is left of a time is its
    noise, and two of them make a ratio.
    """
    squares, freedom = 0.0, 0
    for part in _complete(rounds):
        arms, count = len(part[0]), len(part)
        rows = [statistics.fmean(row) for row in part]
        columns = [statistics.fmean(column) for column in zip(*part, strict=True)]
        middle = statistics.fmean(rows)
        squares += sum(
            (part[n][arm] - rows[n] - columns[arm] + middle) ** 2 for n in range(count) for arm in range(arms)
        )
        freedom += (arms - 1) * (count - 1)
    total = prior.freedom + freedom
    return Pool(math.sqrt(max((prior.freedom * prior.scale**2 + 2 * squares) / total, FLOOR**2)), total)


def _complete(rounds: Sequence[RoundRecord]) -> list[list[list[float]]]:
    """For each group the log times of the arms that were in all of its rounds: a row a round, a column an arm."""
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[list[float]]] = {}
    for one in rounds:
        seats = sorted(one.seats, key=lambda seat: (seat.role, seat.case.uid))
        key = one.group, tuple((seat.role, seat.case.uid) for seat in seats)
        times = [_middle(seat.times) for seat in seats]
        if all(map(math.isfinite, times)):
            groups.setdefault(key, []).append(times)
    return [rows for rows in groups.values() if len(rows) > 1 and len(rows[0]) > 1]


def _middle(times: Sequence[Sequence[float]]) -> float:
    """The median log time of an arm's turns; no number where a turn has none."""
    values = [value for part in times for value in part]
    return statistics.median(map(math.log, values)) if values and all(0 < x < math.inf for x in values) else math.nan


def earlier(rounds: Sequence[RoundRecord]) -> Pool:
    """What earlier rounds of a machine make usual there."""
    pool = usual(rounds)
    return Pool(pool.scale, min(pool.freedom, EARLIER))


@dataclass(frozen=True, slots=True)
class Estimate:
    """The log ratio over rounds, and what it is uncertain by."""

    log_ratio: float
    spread: Spread
    rounds: int

    def ratio(self, *, inverted: bool = False, confidence: float = CONFIDENCE) -> Ratio:
        """How many times slower the case is, with its interval; `inverted`: how many times faster."""
        half = min(self.spread.scale * self.spread.quantile((1 - confidence) / 2), WIDEST)
        middle = -self.log_ratio if inverted else self.log_ratio
        return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))

    @property
    def p_value(self) -> float:
        """How likely a log ratio this far from 0 was, had the true one been 0."""
        from scipy.special import stdtr

        return 2 * float(stdtr(self.spread.freedom, -abs(self.log_ratio) / self.spread.scale))


def estimate(log_ratios: Sequence[float], pool: Pool) -> Estimate | None:
    """The mean over rounds. Its spread is that of these rounds, shrunk to what is usual; None: there are no rounds."""
    if not log_ratios:
        return None
    count = len(log_ratios)
    own = statistics.variance(log_ratios) if count > 1 else 0.0
    trust = min(pool.freedom, TRUST)
    freedom = trust + count - 1
    variance = max((trust * pool.scale**2 + (count - 1) * own) / freedom, FLOOR**2)
    return Estimate(statistics.fmean(log_ratios), Spread(math.sqrt(variance / count), freedom), count)
