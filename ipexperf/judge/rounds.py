"""Ratios of arms over rounds. The round is the unit of replication."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ipexperf.case import Case
from ipexperf.judge.ratios import Estimate, Spread, neighbour_ratio
from ipexperf.ratio import Ratio
from ipexperf.result import RoundRecord, Schedule, SeatRecord


def log_ratio(base: Sequence[Sequence[float]], other: Sequence[Sequence[float]], *, paired: bool) -> float:
    """Log of how many times slower `other` is than `base` in one round: above 0 if it is slower.

    Both have one part for each of their processes. If `paired`, turns at the same index were neighbours in time, and
    only their ratios count. The result is NaN if any time is not above 0.
    """
    compare = neighbour_ratio if paired else _ratio_of_medians
    return statistics.fmean(compare(a, b) for a, b in zip(base, other, strict=True))


def _ratio_of_medians(base: Sequence[float], other: Sequence[float]) -> float:
    if not all(0 < time < math.inf for time in (*base, *other)):
        return math.nan
    return statistics.median(map(math.log, other)) - statistics.median(map(math.log, base))


def precision(base: Sequence[float], other: Sequence[float]) -> float:
    """Standard error of the log ratio within a round, from the median absolute deviation of neighbouring turns."""
    logs = [math.log(b) - math.log(a) for a, b in zip(base, other, strict=True) if a > 0 and b > 0]
    if len(logs) < 2:
        return math.inf
    middle = statistics.median(logs)
    spread = 1.4826 * statistics.median(abs(value - middle) for value in logs)
    # A median is 1.25 times as uncertain as a mean.
    return 1.2533 * spread / math.sqrt(len(logs))


@dataclass(frozen=True, slots=True)
class Pool:
    """Usual standard deviation of a log ratio between rounds, and the degrees of freedom that it is worth."""

    scale: float
    freedom: float


PRIOR = Pool(0.025, 2.0)
"""Assumed before anything was measured: pairs on shared virtual machines spread by 1.5 to 4 %."""
PRIOR_APART = Pool(0.06, 2.0)
"""The same for arms that followed one another, whose ratio contains the drift of the machine."""
TRUST = 6.0
"""Most degrees of freedom that the pool adds to one ratio: arms are not all alike."""
OF_OTHERS = 4.0
"""Most degrees of freedom that a run's other groups add to the pool of one: models differ in how noisy they are."""
EARLIER = 6.0
"""Most degrees of freedom that earlier runs are worth: the machine may behave differently today."""
FLOOR = 0.001
"""Smallest standard deviation between rounds that is believed, however alike a few rounds are."""
OUTLIER = 5.0
"""Standard deviations at which a process is clipped: one in some hundreds is odd, such as twice as slow all along."""
ODD = 1.2
"""Processes that are less than this many times slower or faster than their others are not reported as odd."""
CONFIDENCE = 0.95
"""Confidence of each interval by itself."""
DISTRUST = 0.005
"""If a twin differs from its reference with a p-value below this, the ratios of its group cannot be trusted."""


def logs(rounds: Iterable[RoundRecord], base: Case, case: Case, *, twin: bool = False) -> list[float]:
    """Log of how many times slower a case, or its `twin`, is than a base: a number for each round that had both.

    Left out where it is NaN.
    """
    compared = ((record, _seat(record, base), _seat(record, case, twin=twin)) for record in rounds)
    ratios = (
        log_ratio(first.times, second.times, paired=record.schedule == "together")
        for record, first, second in compared
        if first is not None and second is not None
    )
    return list(filter(math.isfinite, ratios))


def twin_logs(rounds: Iterable[RoundRecord], case: Case) -> list[float]:
    """Log of how many times slower the twin of a case is than the case."""
    return logs(rounds, case, case, twin=True)


def _seat(record: RoundRecord, case: Case, *, twin: bool = False) -> SeatRecord | None:
    """The seat of a case in a round: its launch, or else a seat in which others are compared with it."""
    seats = [seat for seat in record.seats if seat.case == case and (seat.role == "twin") is twin]
    return min(seats, key=lambda seat: seat.role != "case", default=None)


def pooled(rounds: Sequence[RoundRecord], prior: Pool = PRIOR) -> Pool:
    """Pool the spread of all ratios in these rounds with what was known before.

    A two-way layout: subtract from each log time the mean of its round and the mean of its arm. The residual is the
    noise of one arm, and a ratio has the noise of two. Odd processes are clipped first.
    """
    parts = _complete(rounds)
    freedom = sum((len(part[0]) - 1) * (len(part) - 1) for part in parts)
    if not freedom:
        return prior
    total = prior.freedom + freedom
    apart = [distance for part in parts for row in _deviations(part) for distance in row]
    # Deviations are smaller than the noise, because the medians of few values follow them.
    typical = 1.4826 * statistics.median(map(abs, apart)) * math.sqrt(len(apart) / freedom)
    limit = OUTLIER * math.sqrt((prior.freedom * prior.scale**2 / 2 + freedom * typical**2) / total)
    squares = sum(_squares(_clipped(part, limit)) for part in parts)
    return Pool(math.sqrt(max((prior.freedom * prior.scale**2 + 2 * squares) / total, FLOOR**2)), total)


def _deviations(part: Sequence[Sequence[float]]) -> list[list[float]]:
    """The distance of each log time from the median of its arm, less the median distance in its round."""
    # Means first, so that what a round did to all arms is gone exactly; medians then, so that one arm moves no other.
    rows = [[time - statistics.fmean(row) for time in row] for row in part]
    arms = [statistics.median(column) for column in zip(*rows, strict=True)]
    moved = [[time - arm for time, arm in zip(row, arms, strict=True)] for row in rows]
    return [[distance - statistics.median(row) for distance in row] for row in moved]


def _clipped(part: Sequence[Sequence[float]], limit: float) -> list[list[float]]:
    """The log times, none further off than the limit. Two rounds do not say which of them is odd."""
    if len(part) < 3:
        return [list(row) for row in part]
    return [
        [time - distance + min(max(distance, -limit), limit) for time, distance in zip(row, off, strict=True)]
        for row, off in zip(part, _deviations(part), strict=True)
    ]


def _squares(part: Sequence[Sequence[float]]) -> float:
    """The sum of squared residuals of a two-way layout."""
    rows = [statistics.fmean(row) for row in part]
    columns = [statistics.fmean(column) for column in zip(*part, strict=True)]
    middle = statistics.fmean(rows)
    return sum(
        (time - rows[n] - columns[arm] + middle) ** 2 for n, row in enumerate(part) for arm, time in enumerate(row)
    )


@dataclass(frozen=True, slots=True)
class OddProcess:
    """An arm whose process was unlike its others: `factor` times as slow, compared with the other arms of its round."""

    seat: SeatRecord
    number: int
    """The number of its round."""
    factor: float


def odd(rounds: Sequence[RoundRecord], pool: Pool) -> list[OddProcess]:
    """Find processes beyond OUTLIER and ODD. Needs three rounds of the same arms, to know which one is odd."""
    processes = []
    for same in _same_arms(rounds):
        if len(same) < 3:
            continue
        times = [[_middle(seat.times) for seat in seats] for _, seats in same]
        limit = max(OUTLIER * pool.scale, math.log(ODD))
        for (record, seats), row in zip(same, _deviations(times), strict=True):
            processes += [
                OddProcess(seat, record.number, math.exp(distance))
                for seat, distance in zip(seats, row, strict=True)
                if abs(distance) > limit
            ]
    return processes


def _complete(rounds: Sequence[RoundRecord]) -> list[list[list[float]]]:
    """For each set of rounds with the same arms, their log times: one row a round, one column an arm."""
    parts = [[[_middle(seat.times) for seat in seats] for _, seats in same] for same in _same_arms(rounds)]
    return [part for part in parts if len(part) > 1 and len(part[0]) > 1]


def _same_arms(rounds: Sequence[RoundRecord]) -> list[list[tuple[RoundRecord, list[SeatRecord]]]]:
    """Group rounds that had the same arms, each with its seats in an order that does not depend on chance.

    Leave out rounds with a time that is no number.
    """
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[RoundRecord, list[SeatRecord]]]] = {}
    for record in rounds:
        if all(math.isfinite(_middle(seat.times)) for seat in record.seats):
            # The uid of a case is a hash of its content: compute it once.
            named = sorted((((seat.role, seat.case.uid), seat) for seat in record.seats), key=lambda pair: pair[0])
            key = record.group, tuple(name for name, _ in named)
            groups.setdefault(key, []).append((record, [seat for _, seat in named]))
    return list(groups.values())


def _middle(times: Sequence[Sequence[float]]) -> float:
    """Median log time of an arm's turns; NaN if a turn has no valid time."""
    values = [value for part in times for value in part]
    return (
        statistics.median(map(math.log, values))
        if values and all(0 < value < math.inf for value in values)
        else math.nan
    )


@dataclass(frozen=True, slots=True)
class Pools:
    """One pool for arms that took turns, and one for arms that followed one another, over all groups and for each."""

    together: Pool = PRIOR
    apart: Pool = PRIOR_APART
    groups: Mapping[tuple[str, Schedule], Pool] = field(default_factory=dict)

    def of(self, group: str, schedule: Schedule) -> Pool:
        """The pool of a group, or that of all groups."""
        return self.groups.get((group, schedule), self.together if schedule == "together" else self.apart)


PRIORS = Pools()


def pools(rounds: Sequence[RoundRecord], prior: Pools = PRIORS) -> Pools:
    """Pool the spread of these rounds, separately for each schedule, over all groups and for each group."""
    by_schedule: dict[Schedule, dict[str, list[RoundRecord]]] = {"together": {}, "apart": {}}
    for record in rounds:
        by_schedule[record.schedule].setdefault(record.group, []).append(record)
    typical, groups = {}, {}
    for schedule, of_groups in by_schedule.items():
        before = prior.together if schedule == "together" else prior.apart
        alone = {name: pooled(some, before) for name, some in of_groups.items()}
        typical[schedule] = _typical(list(alone.values()), before)
        for name, some in of_groups.items():
            others = [pool for other, pool in alone.items() if other != name]
            groups[name, schedule] = pooled(some, _at_most(_typical(others, before), OF_OTHERS))
    return Pools(typical["together"], typical["apart"], groups)


def _typical(pools_of_groups: Sequence[Pool], prior: Pool) -> Pool:
    """The median scale of several groups: a noisy model says little about the others."""
    # With an even number of groups the prior decides: the mean of a noisy group and a quiet one describes neither.
    scales = [pool.scale for pool in pools_of_groups] + [prior.scale] * (len(pools_of_groups) % 2 == 0)
    return Pool(statistics.median(scales), sum(pool.freedom for pool in pools_of_groups) or prior.freedom)


def earlier(rounds: Sequence[RoundRecord], own: Sequence[RoundRecord] = ()) -> Pools:
    """The pools of a machine's earlier rounds, worth at most EARLIER degrees of freedom.

    The run's `own` are not counted: they would say twice how much its ratios spread.
    """
    own_uids = {record.uid for record in own}
    usual_pools = pools([record for record in rounds if record.uid not in own_uids])
    return Pools(_at_most(usual_pools.together, EARLIER), _at_most(usual_pools.apart, EARLIER))


def _at_most(pool: Pool, freedom: float) -> Pool:
    return Pool(pool.scale, min(pool.freedom, freedom))


@dataclass(frozen=True, slots=True)
class RoundsEstimate(Estimate):
    """The log ratio over rounds, with its standard error."""

    rounds: int

    def ratio(self, *, inverted: bool = False) -> Ratio:
        """How many times slower the case is, with its interval of 95 %; how many times faster if `inverted`."""
        estimate = replace(self, log_ratio=-self.log_ratio) if inverted else self
        return replace(estimate.ratio_within((1 - CONFIDENCE) / 2), rounds=self.rounds)

    @property
    def distrusted(self) -> bool:
        """Whether a twin that differs so much from its case says not to trust the ratios of its group."""
        return self.p_value < DISTRUST

    @property
    def p_value(self) -> float:
        """Probability of a log ratio this far from 0 if the true one were 0."""
        return 2 * self.spread.chance(abs(self.log_ratio))


def estimate(log_ratios: Sequence[float], pool: Pool) -> RoundsEstimate | None:
    """Mean over rounds, with the spread of these rounds shrunk towards the pool. None if there are no rounds.

    From three rounds on, a ratio further than OUTLIER from their median counts as if it lay there.
    """
    if not log_ratios:
        return None
    count = len(log_ratios)
    if count > 2:
        middle, limit = statistics.median(log_ratios), OUTLIER * max(pool.scale, FLOOR)
        log_ratios = [min(max(value, middle - limit), middle + limit) for value in log_ratios]
    observed = statistics.variance(log_ratios) if count > 1 else 0.0
    trust = min(pool.freedom, TRUST)
    freedom = trust + count - 1
    variance = max((trust * pool.scale**2 + (count - 1) * observed) / freedom, FLOOR**2)
    return RoundsEstimate(statistics.fmean(log_ratios), Spread(math.sqrt(variance / count), freedom), count)


def between(rounds: Sequence[RoundRecord], base: Case, case: Case, usual_spread: Pools) -> RoundsEstimate | None:
    """Estimate how many times slower a case is than its base.

    Uses the rounds in which both took turns, or else those in which both took turns with the reference of their group,
    or else those in which they followed one another. None without any.
    """
    (together, pool), (apart, pool_apart) = _by_schedule(rounds, case, usual_spread)
    through = Pool(math.sqrt(2) * pool.scale, pool.freedom)
    return (
        estimate(logs(together, base, case), pool)
        or estimate(logs_through_reference(together, base, case), through)
        or estimate(logs(apart, base, case), pool_apart)
    )


def _by_schedule(
    rounds: Sequence[RoundRecord], case: Case, usual_spread: Pools
) -> list[tuple[list[RoundRecord], Pool]]:
    """The rounds of each schedule, with the pool of the case's group."""
    group = next((record.group for record in rounds if _seat(record, case) is not None), "")
    schedules: tuple[Schedule, ...] = ("together", "apart")
    return [
        ([record for record in rounds if record.schedule == schedule], usual_spread.of(group, schedule))
        for schedule in schedules
    ]


def logs_through_reference(rounds: Sequence[RoundRecord], base: Case, case: Case) -> list[float]:
    """Log of how many times slower a case is than its base, if they are in different parts of a group.

    Each part had the reference of the group. The difference of both ratios to it gives one number for each round.
    """
    references = dict.fromkeys(seat.case for record in rounds for seat in record.seats if seat.role == "reference")
    for reference in references:
        slower, base_slower = (_by_number(rounds, reference, side) for side in (case, base))
        if common := sorted(slower.keys() & base_slower.keys()):
            return [slower[number] - base_slower[number] for number in common]
    return []


def _by_number(rounds: Sequence[RoundRecord], base: Case, case: Case) -> dict[int, float]:
    """The mean log ratio of each round, by the round's number: a part that was made again has it twice."""
    by_number: dict[int, list[float]] = {}
    for record in rounds:
        for value in logs([record], base, case):
            by_number.setdefault(record.number, []).append(value)
    return {number: statistics.fmean(values) for number, values in by_number.items()}


def twin(rounds: Sequence[RoundRecord], case: Case, usual_spread: Pools) -> RoundsEstimate | None:
    """Estimate how many times slower the twin of a case is than the case."""
    estimates = (estimate(twin_logs(some, case), pool) for some, pool in _by_schedule(rounds, case, usual_spread))
    return next(filter(None, estimates), None)
