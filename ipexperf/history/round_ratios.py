"""Ratios from the rounds of a recorded run, each with an interval of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select

from ipexperf.history import rounds
from ipexperf.history.schema import run
from ipexperf.judge.rounds import Pools, RoundsEstimate, between, earlier, pools, twin
from ipexperf.result import RoundRecord

if TYPE_CHECKING:
    from ipexperf.case import Case

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


def read(connection: Connection, run_uid: str, machine_key: str) -> Paired | None:
    """Read the rounds of a run on one machine, or None if there are none."""
    row = connection.execute(select(run.c.id, run.c.started_at).where(run.c.uid == run_uid)).one()
    records = tuple(rounds.of_run(connection, row.id, machine_key))
    if not records:
        return None
    before = rounds.of_machine(connection, machine_key, RUNS, row.started_at)
    return Paired(records, pools(records, prior=earlier(before, records)))
