"""Ratios between cases of a run, from rounds that they shared or else from their launches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ipexperf.case import Case, NetworkCase
from ipexperf.dtypes import PLAIN
from ipexperf.judge import ratios
from ipexperf.judge import rounds as judge
from ipexperf.judge.policy import Policy
from ipexperf.judge.rounds import Pools, RoundsEstimate
from ipexperf.plan.groups import STOCK, groups, plain_mode
from ipexperf.ratio import Ratio
from ipexperf.result import PRIMARY, THROUGHPUT, Measurement, RoundRecord
from ipexperf.verdict import Verdict

FACTOR, OVER_FIRST = "x fp32", "x first"
FACTORS = {
    FACTOR: "throughput over stock fp32: same model, batch, device and kind of mode",
    OVER_FIRST: "throughput over the first case of its group",
}
"""Names of the column with ratios, and what each means."""


def to_beat(case: Case) -> NetworkCase | None:
    """The plain case to compare with: stock, fp32, and the plain mode of its kind (infer_jit -> infer).

    A function has none.
    """
    if not isinstance(case, NetworkCase):
        return None
    return replace(case.without_settings(), dtype=PLAIN, stack=STOCK, mode=plain_mode(case))


@dataclass(frozen=True, slots=True)
class Speeds:
    """The cases of a run whose numbers count, and the rounds of each one's group."""

    by_case: Mapping[NetworkCase, Measurement]
    counted: Mapping[NetworkCase, Measurement]
    rounds: Mapping[Case, Sequence[RoundRecord]] = field(default_factory=dict)
    pools: Pools = judge.PRIORS

    @classmethod
    def of(
        cls,
        by_case: Mapping[NetworkCase, Measurement],
        verdicts: Mapping[str, Verdict],
        records: Sequence[RoundRecord] = (),
        prior: Pools = judge.PRIORS,
    ) -> Speeds:
        """The speeds of these networks. Failed, invalid and contended cases do not count.

        `prior` says how much ratios usually vary on this machine.
        """
        counted = {
            case: measurement
            for case, measurement in by_case.items()
            if ratios.sound(measurement, verdicts.get(case.uid))
        }
        groups: dict[str, list[RoundRecord]] = {}
        for record in records:
            groups.setdefault(record.group, []).append(record)
        # All rounds of a case's group: a case in another part of it is compared through the reference.
        rounds = {seat.case: group for group in groups.values() for record in group for seat in record.seats}
        return cls(by_case, counted, rounds, judge.pools(records, prior))

    def compare(self, base: NetworkCase, case: NetworkCase, metric: str = THROUGHPUT) -> Ratio | None:
        """The ratio of a case to its base in throughput (or step time). None if one of them does not count."""
        if base not in self.counted or case not in self.counted:
            return None
        if (estimate := judge.between(self.rounds.get(case, ()), base, case, self.pools)) is not None:
            return estimate.ratio(inverted=metric != PRIMARY)
        first, second = (self.counted[side].values(metric) for side in (base, case))
        if not first or not second or not all(0 < value < math.inf for value in (*first, *second)):
            return None
        return ratios.compare(first, second, Policy())

    def twin(self, case: NetworkCase) -> RoundsEstimate | None:
        """How many times slower the twin of a case is than the case, if it has one and counts."""
        return judge.twin(self.rounds.get(case, ()), case, self.pools) if case in self.counted else None

    def over_plain(self) -> dict[NetworkCase, Ratio]:
        """The ratio of each case to the throughput of stock fp32. Failed and invalid cases have none."""
        return self._over({case: base for case in self.counted if (base := to_beat(case))})

    def column(self) -> tuple[str, dict[NetworkCase, Ratio]]:
        """The name of a table's column with ratios, and the ratios.

        They are to stock fp32. If the run has no case of it, they are to the first case of each group, such as bf16
        beside packed weights.
        """
        if over_plain := self.over_plain():
            return FACTOR, over_plain
        first = {case: group.reference for group in groups(self.by_case) for case in group.cases}
        over_first = self._over({case: first[case] for case in self.counted})
        return (OVER_FIRST, over_first) if any(case != first[case] for case in over_first) else (FACTOR, {})

    def _over(self, bases: Mapping[NetworkCase, NetworkCase]) -> dict[NetworkCase, Ratio]:
        """The ratio of each case to its base, which is 1 for the base itself."""
        compared = {case: Ratio(1.0) if case == base else self.compare(base, case) for case, base in bases.items()}
        return {case: factor for case, factor in compared.items() if factor is not None}
