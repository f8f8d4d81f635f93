"""The judge's own error rates, from trials whose truth is known. Pure functions on plain records."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ipexperf.case import Case
from ipexperf.outcomes import Outcome

CONFIDENCE = 0.95
"""Confidence of the intervals of rates."""
JUDGED: tuple[Outcome, ...] = ("ok", "improved", "regressed", "inconclusive")


@dataclass(frozen=True, slots=True)
class Trial:
    """A comparison of a case with itself, with or without an injected slowdown, and the judge's verdict."""

    case: Case
    injection: str
    size: float | None
    """The injected slowdown as a fraction. 0 in an A/A, None if it is not known beforehand."""
    outcome: Outcome
    reason: str
    started_at: str
    finished_at: str
    seconds: float
    log_ratios: tuple[float, ...] = ()
    ratio: float | None = None
    lo: float | None = None
    hi: float | None = None
    mde: float | None = None
    cut: bool = False
    """Whether the budget ended it early, so that it says nothing about the judge."""

    @property
    def pairs(self) -> int:
        return len(self.log_ratios)

    @property
    def counts(self) -> bool:
        """Whether it counts for the rates."""
        return self.outcome in JUDGED and not self.cut


@dataclass(frozen=True, slots=True)
class TrialRate:
    """A rate with its exact binomial interval."""

    count: int
    of: int
    lo: float
    hi: float


@dataclass(frozen=True, slots=True)
class SizeRates:
    """All trials of one size. `missed` were called ok (or improved), though not below the tolerance."""

    size: float
    trials: int
    caught: int
    missed: int
    within: int
    """Called ok, rightly, because the slowdown is below the tolerance."""
    inconclusive: int
    pairs: int
    seconds: float


@dataclass(frozen=True, slots=True)
class TrialSummary:
    """The summary of all trials."""

    slower: TrialRate
    """A/A trials that were called regressed: false alarms."""
    faster: TrialRate
    """A/A trials that were called improved."""
    undecided: int
    """A/A trials that ended inconclusive."""
    rows: tuple[SizeRates, ...]
    measured: tuple[Trial, ...]
    """Trials of an injection of unknown size. They cannot be missed."""
    cut: int
    failed: tuple[Trial, ...]
    pairs: int
    seconds: float


def rate(alarms: int, of: int) -> TrialRate:
    """The Clopper-Pearson interval, which is exact."""
    from scipy.special import betaincinv  # type: ignore[import-untyped, unused-ignore] # stubs are a dev extra

    tail = (1 - CONFIDENCE) / 2
    lo = float(betaincinv(alarms, of - alarms + 1, tail)) if alarms else 0.0
    hi = float(betaincinv(alarms + 1, of - alarms, 1 - tail)) if alarms < of else 1.0
    return TrialRate(alarms, of, lo, hi)


def summarise(trials: Sequence[Trial], tolerance: float) -> TrialSummary:
    """Count right and wrong verdicts. Trials that failed or were cut short are counted separately."""
    counted = [trial for trial in trials if trial.counts]
    same = [trial for trial in counted if trial.size == 0]
    sizes = sorted({trial.size for trial in counted if trial.size})
    return TrialSummary(
        slower=rate(_count(same, "regressed"), len(same)),
        faster=rate(_count(same, "improved"), len(same)),
        undecided=_count(same, "inconclusive"),
        rows=tuple(_row(size, [trial for trial in counted if trial.size == size], tolerance) for size in sizes),
        measured=tuple(trial for trial in counted if trial.size is None),
        cut=sum(trial.cut for trial in trials),
        failed=tuple(trial for trial in trials if trial.outcome not in JUDGED),
        pairs=sum(trial.pairs for trial in trials),
        seconds=sum(trial.seconds for trial in trials),
    )


def _row(size: float, trials: Sequence[Trial], tolerance: float) -> SizeRates:
    harmless = size < tolerance
    called_ok = _count(trials, "ok")
    return SizeRates(
        size=size,
        trials=len(trials),
        caught=_count(trials, "regressed"),
        missed=_count(trials, "improved") + (0 if harmless else called_ok),
        within=called_ok if harmless else 0,
        inconclusive=_count(trials, "inconclusive"),
        pairs=sum(trial.pairs for trial in trials),
        seconds=sum(trial.seconds for trial in trials),
    )


def _count(trials: Sequence[Trial], outcome: Outcome) -> int:
    return sum(trial.outcome == outcome for trial in trials)


def spread(trials: Sequence[Trial]) -> float | None:
    """The log standard deviation of pairs, pooled within trials: the noise of the machine."""
    parts = [trial.log_ratios for trial in trials if trial.pairs > 1 and all(map(math.isfinite, trial.log_ratios))]
    freedom = sum(len(part) - 1 for part in parts)
    if not freedom:
        return None
    squares = sum(statistics.variance(part) * (len(part) - 1) for part in parts)
    return float((squares / freedom) ** 0.5)
