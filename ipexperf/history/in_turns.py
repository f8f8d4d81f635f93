"""The ratios that the rounds of a run give: of arms that took turns, each with an interval that holds by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select

from ipexperf.history import rounds
from ipexperf.history.schema import run
from ipexperf.judge.rounds import Estimate, Pool, earlier, estimate, logs, twin_logs, usual
from ipexperf.result import RoundRecord

if TYPE_CHECKING:
    from ipexperf.case import Case

RUNS = 5
"""So many earlier runs of a machine say what is usual there: their rounds are worth few degrees of freedom anyway."""


@dataclass(frozen=True, slots=True)
class Twin:
    """The same case once more in the same rounds: its true ratio is 1."""

    case: Case
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Paired:
    """The rounds of one run on one machine whose arms took turns, and what is usual for their ratios."""

    rounds: tuple[RoundRecord, ...]
    pool: Pool

    def between(self, base: Case, case: Case) -> Estimate | None:
        """How many times slower a case is than its base; None: they sat in no round together."""
        return estimate(logs(self.rounds, base, case), self.pool)

    @property
    def twins(self) -> tuple[Twin, ...]:
        """The twin of each group that has one."""
        cases = dict.fromkeys(seat.case for one in self.rounds for seat in one.seats if seat.role == "twin")
        found = ((case, estimate(twin_logs(self.rounds, case), self.pool)) for case in cases)
        return tuple(Twin(case, told) for case, told in found if told is not None)


def read(connection: Connection, run_uid: str, machine_key: str) -> Paired | None:
    """Read what the rounds of a run say of a machine; None: no arms took turns there."""
    row = connection.execute(select(run.c.id, run.c.started_at).where(run.c.uid == run_uid)).one()
    made = rounds.of_run(connection, row.id, machine_key)
    turns = tuple(one for one in made if one.schedule == "together")
    if not turns:
        return None
    before = rounds.of_machine(connection, machine_key, RUNS, row.started_at)
    return Paired(turns, usual(turns, prior=earlier([one for one in before if one.schedule == "together"])))
