"""Judge each row of a migration by its measurements: pure functions on records."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from ipexperf.judge import structure
from ipexperf.judge.policy import PairPolicy, Policy
from ipexperf.result import ENERGY, MEAN, METRICS, accuracies
from ipexperf.tools.migrate.plan import plainness

if TYPE_CHECKING:
    from ipexperf.case import Case
    from ipexperf.report.speeds import SpeedRatio, Speeds
    from ipexperf.result import Measurement
    from ipexperf.tools.migrate.plan import LostSetting, MigrationPlan, OldCase

UNPLAYED = "its round was not made"
"""The reason of a case that has no numbers and no other reason."""


class Replacement(Enum):
    """How fast the best candidate is compared with the old stack."""

    FASTER = "faster"
    EQUAL = "equal"
    SLOWER = "slower"
    UNCLEAR = "unclear"
    """The interval contains 1, and is too wide to call the two equal."""
    NONE = "none"
    """The new stack has nothing that does this."""
    UNMEASURED = "unmeasured"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The measured results of a case."""

    case: Case
    problem: str = ""
    """Why its numbers do not count, or an empty text."""
    rate: float | None = None
    """Items a second."""
    quality: tuple[str, float] | None = None
    """The most telling metric of accuracy, with its value."""
    peak: float | None = None
    """Peak memory in bytes."""
    start: float | None = None
    """Seconds that a fresh process takes to import everything, and to optimise and compile the network."""
    energy: float | None = None
    """Joules an item."""
    proof: tuple[int, int] = (0, 0)
    """The number of checks that held, and of all."""
    checked: bool = False
    """Whether its accuracy was checked."""
    begun: bool = False
    """Whether any launch of it was started."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A case of the new stack beside the old one's."""

    result: CaseResult
    speed: SpeedRatio | None
    """How many times as fast it is. None: not known."""
    direct: bool = True
    """Whether both took turns in a round. Else they were compared through a case that took turns with each."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The conclusion on a row."""

    row: OldCase
    old: CaseResult
    candidates: tuple[Candidate, ...]
    best: Candidate | None
    """The plainest candidate that is not surely slower than the fastest."""
    replacement: Replacement
    ran: str = ""
    """The main difference in kernels of the best candidate, in a line."""

    @property
    def answered(self) -> bool:
        """Whether it has something to tell: any of its cases was started, or there is no equal."""
        results = (self.old, *(candidate.result for candidate in self.candidates))
        return self.replacement is Replacement.NONE or any(result.begun for result in results)

    @property
    def why_not(self) -> str:
        """Why the row has no ratio, or an empty text."""
        if self.best is not None:
            return ""
        if not self.candidates:
            return self.row.no_equal or "no case does the same work"
        if self.old.problem:
            return f"{self.old.case.stack}: {self.old.problem}"
        problems = [
            f"{candidate.result.case.stack}: {candidate.result.problem}"
            for candidate in self.candidates
            if candidate.result.problem
        ]
        return "; ".join(dict.fromkeys(problems)) or UNPLAYED

    @property
    def less_accurate(self) -> float | None:
        """By how much the accuracy of the best candidate is below the old one's, if that is more than the bound."""
        if self.best is None or self.old.quality is None or self.best.result.quality is None:
            return None
        (name, before), (other, after) = self.old.quality, self.best.result.quality
        bound = METRICS[name].accuracy
        if name != other or bound is None or bound.bound != "difference":
            return None
        return before - after if before - after > Policy().accuracy_bound else None


@dataclass(frozen=True, slots=True)
class Worth:
    """The effect of a setting on the old stack that the new one lacks."""

    setting: LostSetting
    speed: SpeedRatio | None
    """How many times as fast the case is with it."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that a migration found out."""

    rows: tuple[Finding, ...]
    worths: tuple[Worth, ...]
    left_out: Mapping[str, tuple[str, ...]]
    untrained: str = ""
    """Why no training was compared, or an empty text."""

    @property
    def answered(self) -> list[Finding]:
        """The rows that have something to tell."""
        return [finding for finding in self.rows if finding.answered]

    @property
    def never_begun(self) -> dict[str, list[Case]]:
        """The cases of the other rows, by reason."""
        cases: dict[str, list[Case]] = {}
        for finding in self.rows:
            if not finding.answered:
                cases.setdefault(finding.why_not, []).append(finding.row.case)
        return cases


def find(plan: MigrationPlan, speeds: Speeds) -> Findings:
    """Compare every row with its candidates."""
    rows = tuple(_finding(row, speeds) for row in plan.rows)
    worths = tuple(_worth(setting, speeds) for setting in plan.settings)
    return Findings(rows, worths, plan.left_out, plan.untrained)


def _worth(setting: LostSetting, speeds: Speeds) -> Worth:
    """Compare a case with and without a setting if both took turns.

    Through a case that took turns with each, a few percent are not to be seen: two workers together and eight together
    gave times of that case that were 20 % apart.
    """
    beside = _took_turns(setting.off, setting.on, speeds)
    return Worth(setting, speeds.compare(setting.off, setting.on) if beside else None)


def _finding(row: OldCase, speeds: Speeds) -> Finding:
    old = result_of(row.case, speeds)
    candidates = tuple(
        Candidate(result_of(case, speeds), speeds.compare(row.case, case), _took_turns(row.case, case, speeds))
        for case in row.candidates
    )
    best = _best(candidates, speeds)
    ran = _ran(row.case, best.result.case, speeds.by_case) if best else ""
    return Finding(row, old, candidates, best, _replacement(row, best), ran)


def result_of(case: Case, speeds: Speeds) -> CaseResult:
    """The results of a case, even if they do not count."""
    measured = speeds.by_case.get(case)
    if measured is None:
        return CaseResult(case, UNPLAYED)
    counts = case in speeds.counted
    return CaseResult(
        case,
        problem="" if counts else _problem(measured),
        rate=measured.median("throughput") if counts else None,
        quality=_quality(measured),
        peak=measured.median("peak_memory"),
        start=_start(measured),
        energy=_energy(measured) if counts else None,
        proof=_proof(measured),
        checked=any(launch.accuracy for launch in measured.counted),
        begun=bool(measured.launches),
    )


def _problem(measured: Measurement) -> str:
    return (
        measured.never_began or measured.failure or measured.invalid or measured.contended or measured.cut or UNPLAYED
    )


def _quality(measured: Measurement) -> tuple[str, float] | None:
    for name in accuracies():
        if (value := measured.median(name)) is not None:
            return name, value
    return None


def _start(measured: Measurement) -> float | None:
    parts = [measured.median(name) for name in ("import_time", "prepare_time")]
    return sum(part for part in parts if part is not None) if None not in parts else None


def _energy(measured: Measurement) -> float | None:
    launches = [one.metrics for one in measured.counted if ENERGY in one.metrics]
    values = [one[ENERGY] / (one["throughput"] * one[MEAN]) for one in launches]
    return statistics.median(values) if values else None


def _proof(measured: Measurement) -> tuple[int, int]:
    accuracy = next((launch.accuracy for launch in measured.counted if launch.accuracy), ())
    checks = [*(check for launch in measured.counted[:1] for check in launch.proof), *accuracy]
    return sum(check.ok for check in checks), len(checks)


def _best(candidates: Sequence[Candidate], speeds: Speeds) -> Candidate | None:
    """Choose among those that took turns with the row, and those of other rounds that are surely faster than these.

    A ratio between two rounds has the spread of two ratios, so the fastest of several looks faster than it is.
    """
    known = [candidate for candidate in candidates if candidate.speed is not None]
    beside = [candidate for candidate in known if candidate.direct] or known
    if not beside:
        return None
    best = _plainest(beside, beside, speeds)
    faster = [one for one in known if one not in beside and _surely_slower(best.result.case, one.result.case, speeds)]
    return _plainest([*beside, *faster], faster, speeds) if faster else best


def _plainest(candidates: Sequence[Candidate], fast: Sequence[Candidate], speeds: Speeds) -> Candidate:
    """Return the plainest candidate that is not surely slower than the fastest of `fast`."""
    fastest = max(fast, key=lambda one: one.speed.ratio.ratio if one.speed else 0.0)
    alike = [one for one in candidates if not _surely_slower(one.result.case, fastest.result.case, speeds)]
    return min([fastest, *alike], key=lambda one: plainness(one.result.case))


def _took_turns(a: Case, b: Case, speeds: Speeds) -> bool:
    return any({a, b} <= {seat.case for seat in record.seats} for record in speeds.rounds.get(b, ()))


def _surely_slower(case: Case, other: Case, speeds: Speeds) -> bool:
    compared = None if case == other else speeds.compare(other, case)
    return compared is not None and compared.differs and compared.ratio.ratio < 1


def _replacement(row: OldCase, best: Candidate | None) -> Replacement:
    if not row.candidates:
        return Replacement.NONE
    if best is None or best.speed is None:
        return Replacement.UNMEASURED
    lo, hi = best.speed.ratio.lo, best.speed.ratio.hi
    if lo is None or hi is None:
        return Replacement.UNCLEAR
    tolerance = 1 + PairPolicy().tolerance
    if 1 / tolerance <= lo and hi <= tolerance:
        return Replacement.EQUAL
    return Replacement.FASTER if lo > 1 else Replacement.SLOWER if hi < 1 else Replacement.UNCLEAR


def _ran(old: Case, new: Case, measured: Mapping[Case, Measurement]) -> str:
    """The difference of both fingerprints that accounts for most of the time."""
    captured = [
        next((launch.fingerprint for launch in measured[case].counted if launch.fingerprint), None)
        for case in (old, new)
    ]
    state = structure.between(*captured)
    if state.outcome == "same":
        return "the same kernels"
    return state.changes[0] if state.changes else state.reason
