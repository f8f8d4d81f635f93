"""What a run found, in one record: the terminal, markdown and GitHub's lines are functions of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ipexperf.case import Case, NetworkCase
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

    networks: Mapping[NetworkCase, Judged]
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
    commands: Sequence[tuple[str, str]] = ()
    """Where to look next, and what each command does."""

    @classmethod
    def of(
        cls,
        measurements: Iterable[Measurement],
        verdicts: Mapping[str, Verdict],
        rounds: Sequence[RoundRecord] = (),
        prior: Pools = PRIORS,
    ) -> Summary:
        """The cases alone. Verdicts are by case uid, because two batches share one id."""
        ordered = sorted(measurements, key=lambda measurement: measurement.case.slot)
        judged = {measurement.case: Judged(measurement, verdicts[measurement.case.uid]) for measurement in ordered}
        networks = {case: of_case for case, of_case in judged.items() if isinstance(case, NetworkCase)}
        functions = [of_case for case, of_case in judged.items() if case not in networks]
        speeds = Speeds.of({case: judged[case].measurement for case in networks}, verdicts, rounds, prior)
        return cls(networks, functions, speeds, rounds)
