"""Ratios between cases of a run, from rounds that they shared or else from their launches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ipexperf.case import Case
from ipexperf.dtypes import PLAIN
from ipexperf.judge import ratios
from ipexperf.judge import rounds as judge
from ipexperf.judge.policy import Policy
from ipexperf.judge.ratios import Ratio
from ipexperf.judge.rounds import Pools
from ipexperf.plan.groups import STOCK, groups, plain_mode
from ipexperf.report.units import digits
from ipexperf.result import PRIMARY, THROUGHPUT, Measurement, RoundRecord, Verdict

APART = "*"
"""Marks a ratio of launches that did not take turns."""
FACTOR, OVER_FIRST = "x fp32", "x first"
FACTORS = {
    FACTOR: "throughput over stock fp32: same model, batch, device and kind of mode",
    OVER_FIRST: "throughput over the first case of its group",
}
"""Names of the column with ratios, and what each means."""


def to_beat(case: Case) -> Case:
    """The plain case to compare with: stock, fp32, and the plain mode of its kind (infer_jit -> infer)."""
    return replace(case.without_settings(), dtype=PLAIN, stack=STOCK, mode=plain_mode(case))


@dataclass(frozen=True, slots=True)
class SpeedRatio:
    """The ratio of two cases, in speed or in time."""

    ratio: Ratio
    paired: bool
    """Whether the two shared rounds."""

    @property
    def differs(self) -> bool:
        """Whether the two differ significantly."""
        return self.ratio.differs

    @property
    def value(self) -> str:
        """The ratio without its interval."""
        return f"{digits(self.ratio.ratio)}{'' if self.paired else APART}"

    @property
    def bounds(self) -> str:
        """The interval as text, or why there is none."""
        lo, hi = self.ratio.lo, self.ratio.hi
        if lo is None or hi is None:
            return ratios.SINGLE
        return f"{digits(lo)} to {digits(hi)}" if hi / lo < ratios.WIDE else ratios.TOO_FEW

    @property
    def cell(self) -> str:
        """The ratio with its interval, if it has one."""
        return self.value if self.ratio.lo is None else f"{self.value} ({self.bounds})"

    @property
    def brief(self) -> str:
        """The same in short: '3.37 +-2%', rounded up."""
        ratio, lo, hi = self.ratio.ratio, self.ratio.lo, self.ratio.hi
        narrow = lo is not None and hi is not None and hi / lo < ratios.WIDE
        return f"{self.value} +-{math.ceil(100 * (hi / ratio - 1))}%" if narrow and hi else self.value

    def sentence(self, after: str, if_alike: str) -> str:
        """'1.74 times (1.61 to 1.88)', and whether no difference is seen."""
        text = f"{self.value} {after} ({self.bounds})"
        return text if self.differs or self.ratio.lo is None else f"{text}, {if_alike}"


@dataclass(frozen=True, slots=True)
class TwinRatio:
    """The ratio of a twin to its case, which should be 1."""

    ratio: Ratio
    differs: bool
    """Whether it differs significantly from 1."""

    @property
    def cell(self) -> str:
        assert self.ratio.lo is not None and self.ratio.hi is not None  # noqa: PT018, S101 - rounds always have a spread
        return f"{self.ratio.ratio:.3f} ({self.ratio.lo:.3f} to {self.ratio.hi:.3f})"


@dataclass(frozen=True, slots=True)
class Speeds:
    """The cases of a run whose numbers count, and the rounds of each one's group."""

    by_case: Mapping[Case, Measurement]
    counted: Mapping[Case, Measurement]
    rounds: Mapping[Case, Sequence[RoundRecord]] = field(default_factory=dict)
    pools: Pools = judge.PRIORS

    @classmethod
    def of(
        cls,
        measurements: Iterable[Measurement],
        verdicts: Mapping[str, Verdict],
        records: Sequence[RoundRecord] = (),
        prior: Pools = judge.PRIORS,
    ) -> Speeds:
        """The speeds of these measurements. Failed, invalid and contended cases do not count.

        `prior` says how much ratios usually vary on this machine.
        """
        by_case = {measurement.case: measurement for measurement in measurements}
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

    def compare(self, base: Case, case: Case, metric: str = THROUGHPUT) -> SpeedRatio | None:
        """The ratio of a case to its base in throughput (or step time). None if one of them does not count."""
        if base not in self.counted or case not in self.counted:
            return None
        if (estimate := judge.between(self.rounds.get(case, ()), base, case, self.pools)) is not None:
            return SpeedRatio(estimate.ratio(inverted=metric != PRIMARY), paired=True)
        first, second = (self.counted[side].values(metric) for side in (base, case))
        if not first or not second or not all(0 < value < math.inf for value in (*first, *second)):
            return None
        return SpeedRatio(ratios.compare(first, second, Policy()), paired=False)

    def twin(self, case: Case) -> TwinRatio | None:
        """The twin of a case, if it has one and counts."""
        if case not in self.counted:
            return None
        estimate = judge.twin(self.rounds.get(case, ()), case, self.pools)
        return None if estimate is None else TwinRatio(estimate.ratio(inverted=True), estimate.p_value < judge.DISTRUST)

    def over_plain(self) -> dict[Case, SpeedRatio]:
        """The ratio of each case to the throughput of stock fp32. Failed and invalid cases have none."""
        return self._over({case: to_beat(case) for case in self.counted})

    def column(self) -> tuple[str, dict[Case, SpeedRatio]]:
        """The name of a table's column with ratios, and the ratios.

        They are to stock fp32. If the run has no case of it, they are to the first case of each group, such as bf16
        beside packed weights.
        """
        if over_plain := self.over_plain():
            return FACTOR, over_plain
        first = {case: group.reference for group in groups(self.by_case) for case in group.cases}
        over_first = self._over({case: first[case] for case in self.counted})
        return (OVER_FIRST, over_first) if any(case != first[case] for case in over_first) else (FACTOR, {})

    def _over(self, bases: Mapping[Case, Case]) -> dict[Case, SpeedRatio]:
        """The ratio of each case to its base, which is 1 for the base itself."""
        one = SpeedRatio(Ratio(1.0), paired=True)
        compared = {case: one if case == base else self.compare(base, case) for case, base in bases.items()}
        return {case: factor for case, factor in compared.items() if factor is not None}
