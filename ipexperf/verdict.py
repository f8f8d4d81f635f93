"""The verdict on a case, with its evidence: frozen dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ipexperf.outcomes import Outcome, row
from ipexperf.ratio import Ratio
from ipexperf.result import MEAN, PRIMARY


@dataclass(frozen=True, slots=True)
class Structure:
    """The comparison of fingerprints in a verdict. It has no noise, and is no alarm by itself."""

    outcome: Literal["same", "changed", "unstable", "unknown"]
    reason: str = ""
    changes: tuple[str, ...] = ()
    """The changes in words, the largest share of the time difference first."""
    losses: tuple[str, ...] = ()
    """Those that can only cost time, each with the kind of its loss."""
    fails: bool = False
    """True if it fails the test: with `--perf-structure loss`, the default, if there are losses or more floating point
    operations; with `fail` always."""
    work: str = ""
    """How the work of a step is another: `+91 % floating point operations`."""


@dataclass(frozen=True, slots=True)
class BaselineEvidence:
    """The evidence of a verdict against accepted sessions: the newest of them, and the noise."""

    step_time: float | None = None
    sessions: int = 0
    run: str = ""
    commit: str | None = None
    started_at: str = ""
    accepted_at: str = ""
    accepted_by: str = ""
    reason: str = ""
    expires: str | None = None
    expired: bool = False
    differences: tuple[str, ...] = ()
    """How the environment differs from the baseline's, one line each."""
    between_sessions: float | None = None
    """Standard deviation between sessions, of the log. None if speed was not compared."""
    between_sessions_known: bool | None = None
    """True if that was estimated from this case's own sessions."""

    @property
    def testable(self) -> bool:
        """True if the p-value of the verdict can be combined with those of other cases."""
        return bool(self.between_sessions_known)


@dataclass(frozen=True, slots=True)
class MachineEvidence:
    """The same software now and when its baseline was accepted: what changed is the machine."""

    ratio: float
    """The step time now over that of then."""
    outcome: Outcome
    differences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PairsEvidence:
    """The evidence of a verdict on pairs: the other arm, and the log ratio of each pair."""

    against: str
    stopped: str = ""
    """Why the comparison ended."""
    differences: tuple[str, ...] = ()
    """How the arms differ, one line each."""
    log_ratios: tuple[float, ...] = ()
    trimmed: int = 0
    """The number of pairs left out as outliers."""
    apart: str = ""
    """Why the arms did not take turns, or an empty text."""
    lock: str = ""
    """The digest of the lock whose software the other arm ran, if that was a baseline's."""
    own: str = ""
    """The case's own arm, if that was not as it is."""
    answers: str = ""
    """How the answers are other ones than the other arm's, or an empty text."""
    uncompared: str = ""
    """What of the answers cannot be compared and why, or an empty text."""
    machine: MachineEvidence | None = None
    """The other arm compared with the baseline's stored numbers, which the same software gave."""

    @property
    def testable(self) -> bool:
        """Always True: pairs have a p-value, whenever they stopped."""
        return True


Evidence = BaselineEvidence | PairsEvidence
"""The evidence of a verdict."""


@dataclass(frozen=True, slots=True)
class Level:
    """The values of a metric that were compared."""

    before: float
    """The values of the baseline's sessions, or of the other arm."""
    now: float
    unit: str | None = None
    """The unit of a program's number that is no time."""
    pairs: int | None = None
    """How many pairs have them, where not all have: captures of a function end once they tell enough."""


@dataclass(frozen=True, slots=True)
class SpeedVerdict:
    """The judge's verdict on the speed of a case alone."""

    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a case. Its numbers are those of its speed: a `ratio` above 1 is slower.

    Or the verdict on another metric of a case, which is named by `metric`. Its `ratio` is the metric over what it was.
    """

    outcome: Outcome
    reason: str = ""
    """What is to be known beside the numbers, or why there are none. `judge.sentence` tells both."""
    metric: str = PRIMARY
    ratio: Ratio | None = None
    """With its interval of 90 %, whatever the outcome."""
    p_value: float | None = None
    mde: float | None = None
    policy: str = ""
    evidence: Evidence | None = None
    """None if the case was not compared with anything."""
    contended: bool = False
    """True if the case is invalid only because the machine was busy."""
    structure: Structure | None = None
    """The comparison of fingerprints, or None."""
    others: tuple[Verdict, ...] = ()
    """The verdicts on other metrics of the case: those of `--perf-gate` that both sides have."""
    host_changed: bool = False
    """True if the test fails because the host is not what it was when its baseline was accepted."""
    speed: SpeedVerdict | None = None
    """The verdict on its speed alone, if the case has another outcome. None: speed decides."""
    level: Level | None = None
    """The values that were compared."""
    constants: Mapping[str, Any] | None = None
    """The constants of its policy, if it has another than the case."""
    bounds: tuple[float, float] | None = None
    """The ends of the interval that decides."""

    @property
    def times(self) -> float | None:
        """The ratio without its interval."""
        return self.ratio.value if self.ratio else None

    @property
    def alone(self) -> Verdict:
        """The verdict on the speed of the case alone."""
        speed = self.speed or self
        return replace(self, outcome=speed.outcome, reason=speed.reason, others=(), speed=None)

    @property
    def moved(self) -> tuple[Verdict, ...]:
        """The verdicts on other metrics that changed beyond doubt."""
        return tuple(verdict for verdict in self.others if verdict.outcome in ("regressed", "improved"))

    @property
    def pairs(self) -> PairsEvidence | None:
        """The evidence of its pairs, if it was measured in pairs."""
        return self.evidence if isinstance(self.evidence, PairsEvidence) else None

    @property
    def kind(self) -> str:
        """Its outcome for people, who distinguish a busy machine from a wrong measurement."""
        return "contended" if self.contended else self.outcome

    @property
    def untold(self) -> bool:
        """True if the case could not be told: it is in doubt, or the machine was busy."""
        return self.contended or self.outcome == "inconclusive"

    @property
    def slower(self) -> bool:
        """True if it takes longer beyond doubt, in a typical step or in the mean one."""
        return "regressed" in (self.alone.outcome, *(x.outcome for x in self.others if x.metric == MEAN))

    @property
    def worse(self) -> str:
        """The names of the other metrics that regressed."""
        return ", ".join(verdict.metric for verdict in self.others if verdict.outcome == "regressed")

    @property
    def fails(self) -> bool:
        """True if this verdict fails the test. Doubt does not."""
        structure = self.structure is not None and self.structure.fails
        return structure or self.host_changed or (row(self.outcome).fails and not self.contended)
