"""Ratios over rounds: the round is the unit of replication, and an interval covers as often as it says."""

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipexperf.case import NetworkCase
from ipexperf.judge import rounds
from ipexperf.judge.rounds import EARLIER, PRIOR, PRIOR_APART, PRIORS, Pool, Pools, RoundsEstimate
from ipexperf.result import Role, RoundRecord, Schedule, SeatRecord

PLAIN, LEAN, SMALL = (NetworkCase("m", "cpu", dtype, "infer", "stock", 1, 1) for dtype in ("fp32", "bf16", "int8"))


def seat(case: NetworkCase, *times: float, role: Role = "case") -> SeatRecord:
    return SeatRecord(case, role, (times,), 0 if role == "case" else None)


def record(*seats: SeatRecord, group: str = "g", schedule: Schedule = "together") -> RoundRecord:
    return RoundRecord("u", group, 1, schedule, seats, "", 1.0)


def simulated(
    chance: random.Random, count: int, spread: float, machine: Callable[[int], float] | None = None
) -> list[RoundRecord]:
    """Rounds of three cases and a twin, whose ratios spread by so much, on a machine that is ever another."""

    def turns(step: float, common: float) -> float:
        return step * math.exp(common + chance.gauss(0, spread / math.sqrt(2)))

    found = []
    for number in range(count):
        common = machine(number) if machine else 0.0
        found.append(
            record(
                seat(PLAIN, turns(1.0, common)),
                seat(PLAIN, turns(1.0, common), role="twin"),
                seat(LEAN, turns(0.5, common)),
                seat(SMALL, turns(0.2, common)),
            )
        )
    return found


def of_twin(found: Sequence[RoundRecord]) -> RoundsEstimate:
    known = rounds.twin(found, PLAIN, rounds.pools(found))
    assert known is not None
    return known


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("spread", [0.01, 0.02, 0.04])
def test_intervals_of_twins_contain_1_as_often_as_stated(count: int, spread: float) -> None:
    """In about 95 % of them, or more on a machine quieter than usual. The p-value agrees."""
    chance = random.Random(1000 * count + int(1000 * spread))  # noqa: S311 - a simulation, no secret
    found = [of_twin(simulated(chance, count, spread)) for _ in range(600)]
    ratios = [one.ratio() for one in found]
    covered = statistics.fmean(bool(one.lo and one.hi and one.lo <= 1 <= one.hi) for one in ratios)
    assert covered >= 0.91
    assert spread < 0.04 or covered <= 0.98
    assert statistics.fmean(one.p_value > 0.05 for one in found) == covered
    assert statistics.fmean(one.distrusted for one in found) <= 0.02


def test_one_round_has_the_interval_of_the_usual_spread() -> None:
    """It is wide. Without a round there is no interval."""
    found = rounds.estimate([0.02], PRIOR)
    assert found is not None
    ratio = found.ratio()
    assert ratio.value == pytest.approx(math.exp(0.02))
    assert ratio.lo is not None
    assert ratio.hi is not None
    assert 0.8 < ratio.lo < 1 < ratio.hi < 1.25
    assert (found.rounds, ratio.differs, found.p_value > 0.05) == (1, False, True)
    assert rounds.estimate([], PRIOR) is None


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=6), st.floats(0.001, 0.1), st.floats(0, 50))
def test_an_inverted_ratio_has_inverted_bounds(logs: list[float], scale: float, freedom: float) -> None:
    """How many times slower, and how many times faster."""
    found = rounds.estimate(logs, Pool(scale, freedom + 0.5))
    assert found is not None
    slower, faster = found.ratio(), found.ratio(inverted=True)
    assert slower.value * faster.value == pytest.approx(1)
    assert (slower.lo or 0) * (faster.hi or 0) == pytest.approx(1)
    assert (slower.hi or 0) * (faster.lo or 0) == pytest.approx(1)
    assert slower.differs == faster.differs
    assert 0 <= found.p_value <= 1


@given(st.lists(st.floats(-3, 3), min_size=4, max_size=4), st.floats(-3, 3))
def test_the_usual_spread_ignores_what_a_round_did_to_all_of_its_arms(machine: list[float], drift: float) -> None:
    """It also ignores how quick an arm is. Only the rest of a time is noise."""
    quiet = simulated(random.Random(5), 4, 0.02)  # noqa: S311 - a simulation, no secret
    shaken = simulated(random.Random(5), 4, 0.02, lambda number: machine[number] + drift * number)  # noqa: S311
    found, same = rounds.pooled(shaken), rounds.pooled(quiet)
    assert found.scale == pytest.approx(same.scale, rel=1e-6)
    assert found.freedom == same.freedom == PRIOR.freedom + 3 * 3


def test_the_usual_spread_is_pooled_over_all_arms() -> None:
    """With many arms the prior counts for little."""
    chance = random.Random(6)  # noqa: S311 - a simulation, no secret
    assert rounds.pooled([]) == PRIOR
    assert rounds.pooled(simulated(chance, 1, 0.02)) == PRIOR
    for spread in (0.005, 0.02, 0.08):
        assert rounds.pooled(simulated(chance, 60, spread)).scale == pytest.approx(spread, rel=0.25)


def test_only_rounds_of_the_same_arms_show_noise() -> None:
    """A part of a group that was made again has no second row of the same arms."""
    whole = record(seat(PLAIN, 1.0), seat(LEAN, 0.5))
    again = record(seat(LEAN, 0.7), seat(PLAIN, 1.0, role="reference"))
    other = record(seat(PLAIN, 9.0), seat(LEAN, 0.5), group="another")
    assert rounds.pooled([whole, again, other]) == PRIOR
    assert rounds.pooled([whole, whole]).freedom == PRIOR.freedom + 1


def test_earlier_runs_of_a_machine_count_for_little() -> None:
    """They say what is usual, with the weight of a few rounds, because the machine may behave differently today."""
    chance = random.Random(7)  # noqa: S311 - a simulation, no secret
    found = simulated(chance, 40, 0.01)
    assert rounds.earlier(found) == Pools(Pool(rounds.pooled(found).scale, EARLIER), PRIOR_APART)
    assert rounds.earlier([]) == PRIORS == Pools(PRIOR, PRIOR_APART)


def test_the_rounds_of_a_run_are_none_of_its_earlier_ones() -> None:
    found = simulated(random.Random(7), 4, 0.01)  # noqa: S311 - a simulation, no secret
    own = [replace(one, uid="own") for one in found]
    assert rounds.earlier([*found, *own], own) == rounds.earlier(found) != PRIORS


def test_arms_that_followed_one_another_have_a_spread_of_their_own() -> None:
    """Cold starts are noisier than turns. The two spreads do not mix."""
    chance = random.Random(8)  # noqa: S311 - a simulation, no secret
    turns = simulated(chance, 20, 0.01)
    cold = [replace(one, schedule="apart", group="cold") for one in simulated(chance, 20, 0.1)]
    found = rounds.pools([*turns, *cold])
    assert (found.together, found.apart.scale) == (rounds.pooled(turns), pytest.approx(0.1, rel=0.25))
    both = [rounds.twin(some, PLAIN, found) for some in (turns, cold)]
    assert both == [
        rounds.estimate(rounds.twin_logs(turns, PLAIN), found.together),
        rounds.estimate(rounds.twin_logs(cold, PLAIN), found.apart),
    ]


def test_one_odd_process_does_not_spoil_the_ratios_of_the_others() -> None:
    """It is twice as slow in one round of three. Its ratio moves little, and the spread of the others hardly widens."""
    found = simulated(random.Random(9), 3, 0.02)  # noqa: S311 - a simulation, no secret
    odd = [*found[:2], replace(found[2], seats=(*found[2].seats[:2], seat(LEAN, 1.1), found[2].seats[3]))]
    pools = rounds.pools(odd)
    assert pools.together.scale < 2.5 * rounds.pooled(found).scale
    lean, small = (rounds.between(odd, PLAIN, case, pools) for case in (LEAN, SMALL))
    assert lean is not None
    assert small is not None
    assert lean.log_ratio == pytest.approx(math.log(0.5), abs=0.1)
    assert (small.ratio().lo or 0) < 0.2 < (small.ratio().hi or 0) < 0.22

    [one] = rounds.odd(odd, pools.together)
    assert (one.seat.case, one.seat.role, one.number) == (LEAN, "case", 1)
    assert one.factor == pytest.approx(2.2, rel=0.1)
    assert rounds.odd(found, pools.together) == []


def test_two_rounds_do_not_say_which_of_them_is_odd() -> None:
    """So none is clipped or named, and the interval is as wide as they are apart."""
    pair = [record(seat(PLAIN, 1.0), seat(LEAN, step)) for step in (0.5, 1.0)]
    assert rounds.odd(pair, PRIOR) == []
    found = rounds.estimate([0.0, 0.7], PRIOR)
    assert found is not None
    assert found.log_ratio == pytest.approx(0.35)
    assert found.ratio().lo < 1 < 1.9 < found.ratio().hi  # type: ignore[operator]


def test_rounds_with_turns_are_used_alone_where_there_are_any() -> None:
    """A round of arms that followed one another would add noise. It is used where there is no other."""
    turns = record(seat(PLAIN, 1.0), seat(LEAN, 2.0))
    apart = record(seat(PLAIN, 1.0), seat(LEAN, 9.0), seat(SMALL, 3.0), schedule="apart")
    lean, small = (rounds.between([turns, apart], PLAIN, case, PRIORS) for case in (LEAN, SMALL))
    assert lean == rounds.estimate([math.log(2)], PRIOR)
    assert small == rounds.estimate([math.log(3)], PRIOR_APART)
    assert rounds.between([turns], PLAIN, SMALL, PRIORS) is None


STEP = st.floats(1e-3, 1e3)


@given(st.lists(st.tuples(STEP, STEP, STEP), min_size=1, max_size=9))
def test_a_slow_phase_of_the_machine_cancels_in_the_ratio(
    turns: list[tuple[float, float, float]],
) -> None:
    """Both turns are ten times slower for a while."""
    a, b, slow = ([turn[part] for turn in turns] for part in range(3))
    slower = [[step * times for step, times in zip(arm, slow, strict=True)] for arm in (a, b)]
    plain = rounds.log_ratio([a], [b], paired=True)
    assert rounds.log_ratio([slower[0]], [slower[1]], paired=True) == pytest.approx(plain, abs=1e-9)
    assert rounds.log_ratio([b], [a], paired=True) == pytest.approx(-plain, abs=1e-9)


def test_the_ratio_of_arms_that_followed_one_another_is_that_of_their_medians() -> None:
    """Their turns are no neighbours and need not be equally many. Each half of a round with both orders counts."""
    there = rounds.log_ratio([(1.0, 1.0, 1.0)], [(2.0, 2.0)], paired=False)
    assert there == pytest.approx(math.log(2))
    both = rounds.log_ratio([(1.0,), (4.0,)], [(2.0,), (2.0,)], paired=False)
    assert both == pytest.approx(0)


@pytest.mark.parametrize("time", [0.0, -1.0, math.inf, math.nan])
@pytest.mark.parametrize("paired", [True, False])
def test_a_time_that_is_no_number_gives_no_ratio(time: float, *, paired: bool) -> None:
    """A time of 0 makes no arm fast, and the pool leaves the round out."""
    assert math.isnan(rounds.log_ratio([(1.0, time)], [(1.0, 1.0)], paired=paired))
    assert math.isnan(rounds.log_ratio([(1.0, 1.0)], [(time, 1.0)], paired=paired))
    schedule: Schedule = "together" if paired else "apart"
    spoilt = record(seat(PLAIN, 1.0, 1.0), seat(LEAN, time, 2.0), schedule=schedule)
    whole = record(seat(PLAIN, 1.0, 1.0), seat(LEAN, 2.0, 2.0), schedule=schedule)
    assert rounds.logs([spoilt, whole], PLAIN, LEAN) == [pytest.approx(math.log(2))]
    assert rounds.pooled([spoilt, spoilt, whole]) == PRIOR


def test_a_case_is_compared_with_its_base_wherever_both_had_a_seat() -> None:
    """Its seat is its launch, or else the reference of a part of the group, and never its twin."""
    first = record(seat(PLAIN, 1.0), seat(PLAIN, 9.0, role="twin"), seat(LEAN, 2.0))
    part = record(seat(SMALL, 3.0), seat(PLAIN, 1.0, role="reference"))
    assert rounds.logs([first, part], PLAIN, LEAN) == [pytest.approx(math.log(2))]
    assert rounds.logs([first, part], PLAIN, SMALL) == [pytest.approx(math.log(3))]
    assert rounds.logs([first, part], LEAN, SMALL) == []
    assert rounds.twin_logs([first, part], PLAIN) == [pytest.approx(math.log(9))]
    assert rounds.twin_logs([first, part], LEAN) == []


def test_the_precision_of_turns_is_their_standard_error() -> None:
    """It is that of the median of normal noise, as well as sixteen turns can tell."""
    chance = random.Random(8)  # noqa: S311 - a simulation, no secret
    ratios = [[math.exp(chance.gauss(0, 0.02)) for _ in range(16)] for _ in range(400)]
    told = statistics.median(rounds.precision([1.0] * 16, one) for one in ratios)
    true = statistics.stdev(statistics.median(map(math.log, one)) for one in ratios)
    assert told == pytest.approx(true, rel=0.25)
    assert rounds.precision([1.0, 1.0, 0.0], [1.0, 1.0, 1.0]) == 0.0


def parts(number: int, *, base: float, case: float, shaken: float = 0.0) -> list[RoundRecord]:
    """A round in two parts, each with the reference in it. The machine is slower in the second."""
    first = record(seat(PLAIN, 1.0), seat(LEAN, base))
    pace = math.exp(shaken)
    second = record(seat(SMALL, case * pace), seat(PLAIN, 1.0 * pace, role="reference"))
    return [replace(one, number=number) for one in (first, second)]


def test_cases_in_different_parts_are_compared_through_the_reference() -> None:
    """Within each round, so that a change of the machine between the parts cancels. The interval is wider."""
    found = [one for number in (1, 2, 3) for one in parts(number, base=0.5, case=0.2, shaken=0.3 * number)]
    estimate = rounds.between(found, LEAN, SMALL, PRIORS)
    assert estimate is not None
    assert math.exp(estimate.log_ratio) == pytest.approx(0.4)
    assert estimate.rounds == 3
    direct = rounds.between([record(seat(LEAN, 0.5), seat(SMALL, 0.2))] * 3, LEAN, SMALL, PRIORS)
    assert direct is not None
    assert estimate.spread.scale == pytest.approx(math.sqrt(2) * direct.spread.scale)


def test_a_part_that_was_made_again_counts_once() -> None:
    """Its two ratios to the reference are averaged: the round is the unit."""
    again = replace(record(seat(SMALL, 0.2 * math.exp(0.2)), seat(PLAIN, 1.0, role="reference")), number=1)
    estimate = rounds.between(
        [*parts(1, base=0.5, case=0.2), again, *parts(2, base=0.5, case=0.2)], LEAN, SMALL, PRIORS
    )
    assert estimate is not None
    assert estimate.rounds == 2
    assert estimate.log_ratio == pytest.approx(math.log(0.4) + 0.05)


def test_a_noisy_group_widens_its_own_ratios() -> None:
    """It hardly widens those of other groups, because models differ in how noisy they are."""
    chance = random.Random(5)  # noqa: S311 - a simulation, no secret
    quiet = simulated(chance, 6, 0.01)
    noisy = [replace(one, group="noisy") for one in simulated(chance, 6, 0.2)]
    third = [replace(one, group="third") for one in simulated(chance, 6, 0.01)]
    known = rounds.pools([*quiet, *noisy, *third])
    assert known.of("noisy", "together").scale > 0.1
    assert known.of("g", "together").scale < 0.03
    assert known.together.scale < 0.03
    assert known.of("another", "together") == known.together
    assert known.of("g", "apart") == PRIOR_APART
    wide, narrow = (rounds.between(some, PLAIN, LEAN, known) for some in (noisy, quiet))
    assert wide is not None
    assert narrow is not None
    assert wide.spread.scale > 4 * narrow.spread.scale
