"""Rounds in the database: their arms, the turns of each arm, and the ratios of arms with their intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, combinations
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, exists, insert, select

from ipexperf.case import Case
from ipexperf.history.rows import case_of
from ipexperf.history.schema import case as case_table
from ipexperf.history.schema import environment, launch, paired, round_, run, seat
from ipexperf.history.statements import NEWEST_FIRST, OF_CASE
from ipexperf.history.values import finite, pack, storable, unpack, utc
from ipexperf.judge.rounds import Pools, RoundsEstimate, between, earlier, log_ratio, pools, twin
from ipexperf.result import RoundRecord, SeatRecord

RUNS = 5
"""Number of earlier runs of a machine that count for its usual spread. Their weight is capped, so more add little."""


@dataclass(frozen=True, slots=True)
class Twin:
    """The same case measured twice in the same rounds: its true ratio is 1."""

    case: Case
    estimate: RoundsEstimate


@dataclass(frozen=True, slots=True)
class Paired:
    """The rounds of one run on one machine, and the usual spread of their ratios."""

    rounds: tuple[RoundRecord, ...]
    pools: Pools

    def between(self, base: Case, case: Case) -> RoundsEstimate | None:
        """How many times slower a case is than its base, or None if they shared no round."""
        return between(self.rounds, base, case, self.pools)

    @property
    def twins(self) -> tuple[Twin, ...]:
        """The twin of each group that has one."""
        cases = dict.fromkeys(seat.case for record in self.rounds for seat in record.seats if seat.role == "twin")
        estimates = ((case, twin(self.rounds, case, self.pools)) for case in cases)
        return tuple(Twin(case, estimate) for case, estimate in estimates if estimate is not None)


def write(
    connection: Connection, run_id: int, environment_id: int, record: RoundRecord, cases: Mapping[Case, int]
) -> None:
    """Write a round of a run. `cases` has the row id of each case; `environment_id` is that of the run."""
    where = _environment(connection, run_id, record, cases)
    numbers = {name: getattr(record, name) for name in ("number", "seconds", "turns", "dropped")}
    values = {"uid": record.uid, "run_id": run_id, "environment_id": environment_id if where is None else where}
    texts = {"name": storable(record.group), "schedule": record.schedule, "started_at": utc(record.started_at)}
    stored = insert(round_).returning(round_.c.id)
    key = {"round_id": connection.execute(stored, {**values, **texts, **numbers}).scalar_one()}
    connection.execute(insert(seat), [{**key, **_seat(place, arm, cases)} for place, arm in enumerate(record.seats)])
    connection.execute(insert(paired), [{**key, **pair} for pair in _pairs(record, cases)])


def _environment(connection: Connection, run_id: int, record: RoundRecord, cases: Mapping[Case, int]) -> int | None:
    """Return the environment of the first recorded launch of a round. The run may have used several devices."""
    for arm in record.seats:
        of_case = (launch.c.run_id == run_id, launch.c.case_id == cases[arm.case])
        query = select(launch.c.environment_id).where(*of_case, launch.c.launch == arm.launch)
        if arm.launch is not None and (number := connection.execute(query).scalar_one_or_none()) is not None:
            return int(number)
    return None


def _seat(place: int, arm: SeatRecord, cases: Mapping[Case, int]) -> dict[str, Any]:
    """Return the row of an arm: the turn times of its processes in sequence, and the number of turns of each."""
    return {
        "place": place,
        "case_id": cases[arm.case],
        "role": arm.role,
        "launch": arm.launch,
        "turns": [len(part) for part in arm.times],
        "data": pack([time for part in arm.times for time in part]),
    }


def _pairs(record: RoundRecord, cases: Mapping[Case, int]) -> Iterator[dict[str, Any]]:
    """Yield the ratio of each two arms, the later seat over the earlier one."""
    for (first, base), (second, other) in combinations(enumerate(record.seats), 2):
        ratio = log_ratio(base.times, other.times, paired=record.schedule == "together")
        yield {
            "base_place": first,
            "place": second,
            "base_id": cases[base.case],
            "case_id": cases[other.case],
            "base_role": base.role,
            "role": other.role,
            "log_ratio": finite(ratio),
            "turns": sum(min(len(a), len(b)) for a, b in zip(base.times, other.times, strict=True)),
        }


def of_run(connection: Connection, run_id: int, machine_key: str | None = None) -> tuple[RoundRecord, ...]:
    """Return the rounds of a run in the order of time, optionally on one machine only."""
    where = [round_.c.run_id == run_id]
    if machine_key is not None:
        where.append(environment.c.machine_key == machine_key)
    return _read(connection, *where)


def of_machine(connection: Connection, machine_key: str, limit: int, before: str | None) -> tuple[RoundRecord, ...]:
    """Return the rounds of a machine's newest runs that have rounds, oldest first."""
    numbers = [row.id for row in connection.execute(runs_of(machine_key, limit, before))]
    return _read(connection, round_.c.run_id.in_(numbers), environment.c.machine_key == machine_key)


def runs_of(machine_key: str, limit: int, before: str | None) -> Select[Any]:
    """Select the newest runs that have rounds on a machine."""
    here = select(environment.c.id).where(environment.c.machine_key == machine_key)
    has_rounds = exists().where(round_.c.run_id == run.c.id, round_.c.environment_id.in_(here))
    # Without a bound of the time SQLite 3.53 would sort all runs.
    query = select(run.c.id).where(has_rounds, run.c.started_at < (before or "9999"))
    return query.order_by(*NEWEST_FIRST).limit(limit)


def rounds_of(*where: ColumnElement[bool]) -> Select[Any]:
    """Select rounds in the order of time."""
    return (
        select(round_)
        .join(environment, environment.c.id == round_.c.environment_id)
        .where(*where)
        .order_by(round_.c.started_at, round_.c.number, round_.c.uid)
    )


def seats_of(*where: ColumnElement[bool]) -> Select[Any]:
    """Select the seats of the same rounds, each with its case."""
    return (
        select(seat, *OF_CASE)
        .select_from(round_)
        .join(environment, environment.c.id == round_.c.environment_id)
        .join(seat, seat.c.round_id == round_.c.id)
        .join(case_table, case_table.c.id == seat.c.case_id)
        .where(*where)
        .order_by(seat.c.round_id, seat.c.place)
    )


def _read(connection: Connection, *where: ColumnElement[bool]) -> tuple[RoundRecord, ...]:
    seats: dict[int, list[SeatRecord]] = defaultdict(list)
    cases: dict[int, Case] = {}
    for row in connection.execute(seats_of(*where)).mappings():
        if row["case_id"] not in cases:
            cases[row["case_id"]] = case_of(row)
        times = _parts(unpack(row["data"]), row["turns"])
        seats[row["round_id"]].append(SeatRecord(cases[row["case_id"]], row["role"], times, row["launch"]))
    return tuple(
        RoundRecord(
            uid=row.uid,
            group=row.name,
            number=row.number,
            schedule=row.schedule,
            seats=tuple(seats[row.id]),
            started_at=row.started_at,
            seconds=row.seconds,
            turns=row.turns,
            dropped=row.dropped,
        )
        for row in connection.execute(rounds_of(*where))
    )


def _parts(times: tuple[float, ...], turns: list[int]) -> tuple[tuple[float, ...], ...]:
    ends = [*accumulate(turns)]
    return tuple(times[end - count : end] for count, end in zip(turns, ends, strict=True))


def read_paired(connection: Connection, run_uid: str, machine_key: str) -> Paired | None:
    """Read the rounds of a run on one machine, or None if there are none."""
    row = connection.execute(select(run.c.id, run.c.started_at).where(run.c.uid == run_uid)).one()
    records = of_run(connection, row.id, machine_key)
    if not records:
        return None
    before = of_machine(connection, machine_key, RUNS, row.started_at)
    return Paired(records, pools(records, prior=earlier(before)))
