"""Every constant that the judge decides with, in one frozen record that a verdict can name."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from ipexperf.errors import UsageError


@dataclass(frozen=True, slots=True)
class Policy:
    """What counts as slower, and how sure the judge must be before it says so. Probabilities are one-sided."""

    name: str = "screen-1"
    tolerance: float = 0.05
    """A slowdown up to this fraction is nobody's business."""
    hard_limit: float = 0.30
    """While the noise between sessions is unknown, only a slowdown surely beyond this fraction fails."""
    alpha: float = 0.005
    """How often one unchanged case may be called regressed (or improved), however few cases there are."""
    ok_alpha: float = 0.05
    """How often a case that is slower than the tolerance may be called ok. Shown intervals are 1 - 2 x this."""
    mde_power: float = 0.80
    """A slowdown of the stated smallest detectable effect is found with this probability."""
    minimum_launches: int = 2
    """Fewer launches than this have no spread, so nothing is said of speed."""
    known_sessions: int = 3
    """From this many sessions on, the noise between them is estimated instead of assumed."""
    kept_sessions: int = 12
    """A baseline keeps this many sessions, the newest."""
    tau_prior: float = 0.19
    """Log sd between sessions while there is no history: raw process medians on a shared VM (judge.md: 19 %)."""
    tau_prior_spread: float = 0.8
    """Log sd of that log sd over machines and series: a factor of 2.2 either way, so that history soon outweighs it."""
    tau_floor: float = 0.002
    """No series is believed to be quieter than this between sessions, however alike three of them look."""
    accuracy_bound: float = 0.02
    """`accuracy` and `agreement` may differ from the baseline's by this much, either way."""
    loss_bound: float = 0.05
    """`loss` may differ from the baseline's by this fraction, either way."""
    fidelity_factor: float = 2.0
    """`fidelity` may differ from the baseline's by this factor, either way."""
    fidelity_floor: float = 1e-5
    """Two fidelities below this are both rounding, and equal."""
    false_discovery_rate: float = 0.05
    """A run's alarm rate: its cases share it (Bonferroni), and of what it finds as a whole so much may be noise."""
    shift_cases: int = 5
    """From this many judged cases on, a moved median case is a shift of the platform."""

    def __post_init__(self) -> None:
        for field in ("alpha", "ok_alpha", "false_discovery_rate"):
            if not 0 < getattr(self, field) < 0.5:
                raise UsageError(f"policy {self.name!r}: {field} must be between 0 and 0.5, got {getattr(self, field)}")
        if self.minimum_launches < 2:
            raise UsageError(f"policy {self.name!r}: minimum_launches must be at least 2: one launch has no spread")
        if not 3 <= self.known_sessions <= self.kept_sessions:
            raise UsageError(f"policy {self.name!r}: known_sessions must be between 3 and kept_sessions")
        if not 0 < self.tolerance <= self.hard_limit:
            raise UsageError(f"policy {self.name!r}: tolerance must be above 0 and at most hard_limit")

    @property
    def uid(self) -> str:
        """The name by content: two policies with the same uid decide alike."""
        document = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(document.encode()).hexdigest()

    @property
    def label(self) -> str:
        """How a verdict names the policy: its name and the start of its uid."""
        return f"{self.name}@{self.uid[:12]}"

    def shared(self, cases: int) -> Policy:
        """The policy for each of so many judged cases: one run has one alarm rate, however many they are."""
        return replace(self, alpha=min(self.alpha, self.false_discovery_rate / max(cases, 1)))

    def for_run(self) -> Policy:
        """The policy that a run as a whole is settled by: it has a name of its own, and so verdicts of its own."""
        return replace(self, name="run-1")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Policy:
        return cls(**document)
