"""Rounds are read as they were recorded, and stay when their cases are recorded again."""

import math
from dataclasses import replace

import pytest
from history_records import ENVIRONMENT, OK, make_case, make_launch, make_measurement, make_round, make_seat
from sqlalchemy import text

from ipexperf.judge import rounds as judge
from ipexperf.result import SeatRecord

CASE, BASE = make_case(), make_case(dtype="fp32")


def begin(history, *cases, day=4, environment=ENVIRONMENT):
    """A run of these cases."""
    uid = history.start_run(environment, {"started_at": f"2026-05-{day:02d}T08:00:00Z", "suite": "nightly"})
    for case in cases or (CASE, BASE):
        history.record(uid, make_measurement(case, environment=environment), OK)
    return uid


def query(history, sql):
    with history._engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(sql))]


@pytest.mark.parametrize("schedule", ["together", "apart"])
def test_a_round_is_read_as_it_was_recorded(history, schedule):
    """With arms of several processes, which had unlike numbers of turns, and knobs."""
    uid = begin(history)
    knobs = make_case(knobs=(("threads", "4"),))
    arms = (
        SeatRecord(BASE, "reference", ((0.02, 0.021), (0.03,)), None),
        SeatRecord(knobs, "case", ((0.01, 1e-9), (1e6,)), 3),
    )
    one = make_round(*arms, schedule=schedule, group="any name: \u2713")
    history.record_round(uid, one)
    assert history.show(uid).rounds == (one,)


def test_a_turn_without_a_number_is_stored_too(history):
    """The ratio of such a round is NaN, not 0."""
    bad = SeatRecord(CASE, "case", ((0.0, 0.01, math.nan, math.inf),), 0)
    uid = begin(history)
    history.record_round(uid, make_round(make_seat(BASE, 0.02), replace(bad, times=((0.0,) * 8,))))
    history.record_round(uid, make_round(replace(bad, case=BASE), bad, number=2))
    first, second = history.show(uid).rounds
    assert first.seats[1].times == ((0.0,) * 8,)
    assert list(map(repr, second.seats[1].times[0])) == ["0.0", "0.01", "nan", "inf"]
    assert query(history, "SELECT log_ratio FROM paired") == [(None,), (None,)]


def test_each_two_arms_have_a_row_with_their_ratio_for_queries_in_sql(history):
    """The later seat over the earlier one, as the judge computes it."""
    uid = begin(history)
    arms = (make_seat(BASE, 0.02), make_seat(BASE, 0.0202, "twin"), make_seat(CASE, 0.01))
    one = make_round(*arms)
    history.record_round(uid, one)
    asked = """SELECT base.dtype, paired.base_role, "case".dtype, paired.role, paired.log_ratio, paired.turns
        FROM paired JOIN round ON round.id = paired.round_id JOIN "case" ON "case".id = paired.case_id
        JOIN "case" base ON base.id = paired.base_id ORDER BY paired.base_place, paired.place"""
    assert query(history, asked) == [
        ("fp32", "case", "fp32", "twin", pytest.approx(math.log(1.01)), 8),
        ("fp32", "case", "bf16", "case", pytest.approx(-math.log(2)), 8),
        ("fp32", "twin", "bf16", "case", pytest.approx(-math.log(2.02)), 8),
    ]
    assert query(history, asked)[1][4] == judge.logs([one], BASE, CASE)[0]


def test_rounds_survive_that_their_cases_are_recorded_again(history):
    """A case is recorded again after each round of its group. That replaces its launches and not its rounds."""
    uid = begin(history)
    for number in (1, 2, 3):
        history.record_round(uid, make_round(number=number))
        for case in (CASE, BASE):
            launches = tuple(make_launch(index, 0.01) for index in range(number))
            history.record(uid, make_measurement(case, launches=launches), OK, again=True)
    detail = history.show(uid)
    assert [one.number for one in detail.rounds] == [1, 2, 3]
    assert [len(one.launches) for one in detail.cases] == [3, 3]


def test_a_reference_in_a_round_needs_no_record_of_its_own(history):
    """The reference of a later part of a group may have failed, or not be recorded yet."""
    uid = begin(history, CASE)
    one = make_round(make_seat(BASE, 0.02, "reference"), make_seat(CASE, 0.01))
    history.record_round(uid, one)
    assert history.show(uid).rounds == (one,)
    assert [found.case for found in history.measurements(uid)] == [CASE]


def test_the_rounds_of_a_machine_are_those_of_its_newest_runs_with_rounds(history):
    """Oldest first, before a moment, and of no other machine."""
    for day in (1, 2, 3, 4):
        uid = begin(history, day=day)
        if day != 3:
            for number in (1, 2):
                history.record_round(uid, make_round(day=day, number=number))
    other = begin(history, day=5, environment={**ENVIRONMENT, "machine_key": "max-1550"})
    history.record_round(other, make_round(day=5))
    key = ENVIRONMENT["machine_key"]
    assert [one.started_at[8:10] for one in history.rounds_of_machine(key)] == ["01"] * 2 + ["02"] * 2 + ["04"] * 2
    assert [one.started_at[8:10] for one in history.rounds_of_machine(key, 2)] == ["02"] * 2 + ["04"] * 2
    found = history.rounds_of_machine(key, 1, before="2026-05-04T08:00:00Z")
    assert found == (make_round(day=2), make_round(day=2, number=2))
    assert [one.started_at[8:10] for one in history.rounds_of_machine("max-1550")] == ["05"]
    assert history.rounds_of_machine("nowhere") == ()


def test_a_round_belongs_to_the_machine_of_its_launches(history):
    """A run on a CPU and a card has two machine keys, whose usual spreads are separate."""
    card = {**ENVIRONMENT, "machine_key": "max-1550"}
    uid = begin(history)
    cases = [make_case(device="xpu"), make_case(device="xpu", dtype="fp32")]
    for case in cases:
        history.record(uid, make_measurement(case, environment=card), OK)
    history.record_round(uid, make_round())
    of_card = make_round(*(make_seat(case, 0.001) for case in cases), number=2)
    history.record_round(uid, of_card)
    assert history.rounds_of_machine("max-1550") == (of_card,)
    assert history.rounds_of_machine("xeon-8480-2s") == (make_round(),)
    assert [key for _, key in history.paired(history.measurements(uid))] == ["xeon-8480-2s", "max-1550"]
    assert history.show(uid).rounds == (make_round(), of_card)


def test_the_earlier_rounds_of_a_machine_are_the_prior_of_a_run(history):
    """With the judge's numbers. Later rounds do not count."""
    made = {}
    for day, spread in ((1, 0.02), (2, 0.05), (3, 0.9)):
        uid = begin(history, day=day)
        made[day] = [
            make_round(make_seat(BASE, 0.02), make_seat(CASE, 0.01 * (1 + spread * number)), day=day, number=number)
            for number in (1, 2, 3)
        ]
        for one in made[day]:
            history.record_round(uid, one)
    (found,) = history.paired(history.measurements("last~1")).values()
    assert found.rounds == tuple(made[2])
    pools = judge.pools(made[2], prior=judge.earlier(made[1]))
    assert found.pools == pools
    assert found.between(BASE, CASE) == judge.estimate(judge.logs(made[2], BASE, CASE), pools.together)
    assert found.between(BASE, make_case("other")) is None
