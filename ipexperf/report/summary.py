"""What a run found, in one record: the terminal, markdown and GitHub's lines are functions of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ipexperf.case import Case
from ipexperf.judge.rounds import PRIORS, Pools
from ipexperf.report.speeds import Speeds
from ipexperf.result import Measurement, RoundRecord
from ipexperf.verdict import Verdict


class Judged(NamedTuple):
    """A measured case with its verdict."""

    measurement: Measurement
    verdict: Verdict

    @property
    def case(self) -> Case:
        return self.measurement.case


@dataclass(frozen=True, slots=True)
class Summary:
    """A run: its cases with their verdicts, and what is said of the run as a whole."""

    networks: Mapping[Case, Judged]
    functions: Sequence[Judged]
    speeds: Speeds
    rounds: Sequence[RoundRecord] = ()
    ablated: Sequence[str] = ()
    """The knobs that `--perf-ablate` turned."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many cells of the matrix were left out, by reason."""
    line: str = ""
    """The verdict on the run as a whole, or an empty text."""
    slower: Sequence[str] = ()
    """The ids of the cases that this verdict is about."""
    fails: bool = False
    """Whether the run fails as a whole."""
    unseen: bool = False
    """Whether it does although no test failed."""
    notes: Sequence[str] = ()
    """What else is said of the run, above its cases."""
    missing: Sequence[str] = ()
    """The ids of accepted cases that it should have measured."""
    commands: Sequence[str] = ()
    """Where to look next."""

    @classmethod
    def of(
        cls,
        measurements: Iterable[Measurement],
        verdicts: Mapping[str, Verdict],
        rounds: Sequence[RoundRecord] = (),
        prior: Pools = PRIORS,
    ) -> Summary:
        """The cases alone. Verdicts are by case uid, because two batches share one id."""
        cases = [Judged(measurement, verdicts[measurement.case.uid]) for measurement in measurements]
        cases.sort(key=lambda judged: (judged.case.id, judged.case.batch, judged.case.size))
        networks = {judged.case: judged for judged in cases if not judged.case.is_call}
        functions = [judged for judged in cases if judged.case.is_call]
        speeds = Speeds.of([judged.measurement for judged in networks.values()], verdicts, rounds, prior)
        return cls(networks, functions, speeds, rounds)
