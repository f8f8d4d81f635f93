"""The constants of the judge, in frozen records that verdicts refer to."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from ipexperf.errors import UsageError
from ipexperf.result import Metric

OF_CAPTURES = 0.25
"""The assumed noise of a function's captures counts as much as this many of them: only three may tell theirs."""


@dataclass(frozen=True, slots=True)
class Constants:
    """Base of the policies: a name for people, and a uid from their content."""

    name: str

    @property
    def uid(self) -> str:
        """A hash of the content. Policies with the same uid decide alike."""
        document = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(document.encode()).hexdigest()

    @property
    def label(self) -> str:
        """The label in verdicts: the name and the start of the uid."""
        return f"{self.name}@{self.uid[:12]}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerant(Constants):
    """Base of the policies that ignore a share of their tolerance and exclude the whole of it.

    Probabilities are one-sided.
    """

    tolerance: float = 0.05
    """Changes for the worse up to this fraction are ignored."""
    harmless: float = 0.4
    """A change is `regressed` if it surely exceeds this share of the tolerance: 2 % for a tolerance of 5 %."""
    alpha: float = 0.005
    """Largest rate at which a case that is worse by no more than that may be called regressed (mirrored: improved)."""
    ok_alpha: float = 0.05
    """Rate at which a change of the tolerance may be called ok. Shown intervals are 1 - 2 x this."""
    mde_power: float = 0.80
    """The stated smallest detectable change is found with this probability."""

    @property
    def margin(self) -> float:
        """The change that must surely be exceeded, as a log ratio."""
        return math.log1p(self.harmless * self.tolerance)

    @property
    def gain(self) -> float:
        """The change for the better that must surely be exceeded, as a log ratio."""
        return self.margin

    @property
    def limit(self) -> float:
        """The change that must surely not be reached, as a log ratio."""
        return math.log1p(self.tolerance)


@dataclass(frozen=True, slots=True)
class GatePolicy(Constants):
    """When a launch counts as contended: the largest shares of its time that may be lost to something else."""

    name: str = "gate-1"
    others: float = 0.25
    """CPU time of other processes on the cores of the case."""
    steal: float = 0.10
    """CPU time taken by the hypervisor."""
    held_up: float = 0.20
    """Time in which threads of the case waited for a core."""
    memory_pressure: float = 0.10
    """Time in which any process waited for memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy(Tolerant):
    """The policy for comparisons with a baseline.

    `alpha` is the rate for improvements and for other metrics.
    """

    name: str = "screen-2"
    again_alpha: float = 0.02
    """The tail of the interval that must exclude that: in a first look, and in a second one at more launches.

    Calibrated with the factor of launches by benchmarks/detection/screen.py: in recorded noise at most 0.5 % of runs
    have an alarm.
    """
    minimum_launches: int = 2
    """With fewer launches there is no spread, and no verdict on speed."""
    known_sessions: int = 3
    """From this many sessions on, the noise between them is estimated rather than assumed."""
    kept_sessions: int = 12
    """A baseline keeps this many sessions, the newest."""
    tau_prior: float = 0.19
    """Log sd between sessions before anything is known: raw process medians on a shared VM. `usual_noise` of a machine
    takes its place."""
    tau_prior_spread: float = 0.8
    """Log sd of that assumption over machines: a factor of 2.2 either way, so what is seen soon outweighs it."""
    launch_factor: float = 1.4
    """Sessions spread by this much more than the launches of a session do, in recorded noise."""
    launch_spread: float = 0.3
    """Log sd of that factor over cases and machines."""
    pool_series: int = 5
    """Number of series with two sessions or more that tell how much the sessions of a machine differ."""
    tau_floor: float = 0.002
    """Lower bound on the noise between sessions, however alike three of them look."""
    accuracy_bound: float = 0.02
    """`accuracy` and `agreement` may differ from the baseline's by this much, either way."""
    loss_bound: float = 0.05
    """`loss` may differ from the baseline's by this fraction, either way."""
    loss_floor: float = 0.02
    """Or by this fraction of the loss at the beginning: what is left of it after training is mostly rounding."""
    fidelity_factor: float = 2.0
    """`fidelity` may differ from the baseline's by this factor, either way."""
    fidelity_floor: float = 1e-5
    """Fidelities below this are rounding errors and count as equal."""
    false_discovery_rate: float = 0.05
    """Alarm rate of a run, shared by its cases (Bonferroni), and false discovery rate of the run as a whole."""
    shift_cases: int = 5
    """From this many stable cases on, a change of the median case is a shift of the platform."""

    @property
    def gain(self) -> float:
        """More than elsewhere: nothing measures an improvement again, and it begins a baseline anew."""
        return self.limit

    def shared(self, cases: int) -> Policy:
        """The policy for each of `cases` judged cases, which share the alarm rate of the run."""
        share = min(1.0, self.false_discovery_rate / (self.alpha * max(cases, 1)))
        return replace(self, alpha=share * self.alpha, again_alpha=share * self.again_alpha)

    def for_run(self) -> Policy:
        """The policy for the run as a whole, under a name of its own."""
        return replace(self, name="run-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPolicy(Tolerant):
    """The policy for pairs, which are judged sequentially."""

    name: str = "pairs-2"
    looks: tuple[int, ...] = (4, 5, 6, 8, 10, 12, 15, 19, 24)
    """Numbers of pairs after which the judge looks. The last look is at the largest number allowed."""
    rho: float = 1.5
    """After n of 24 pairs, (n / 24) to this power of the alarm rate is spent."""
    levels: tuple[float, ...] = (0.066, 0.024, 0.031, 0.074, 0.028, 0.048, 0.083, 0.223, 0.347)
    """Level of the test at each look as a share of alpha, calibrated by benchmarks/detection/calibrate.py."""
    ok_levels: tuple[float, ...] = (0.067, 0.047, 0.052, 0.091, 0.105, 0.150, 0.239, 0.383, 0.565)
    """Likewise as a share of ok_alpha."""
    caution: float = 0.44
    """An earlier last look, possibly trimmed, spends this share of what is left. Calibrated likewise."""
    max_pairs: int = 24
    floor: float = 0.001
    """Lower bound on the spread of pairs on the log scale, however alike a few of them are."""
    outlier: float = 7.0
    """A pair further than this many robust standard deviations from the median shows contamination."""
    trim: float = 0.2
    """With contamination, this share of the pairs is trimmed on each side (Yuen)."""
    trim_from: int = 10
    """Fewer pairs are never trimmed."""
    false_discovery_rate: float = 0.05
    """Alarm rate of a run, shared by its cases (Bonferroni)."""

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < 1:
            raise UsageError(f"tolerance: expected a fraction between 0 and 1, got {self.tolerance:g}")
        if not 0 < self.alpha < 0.5:
            raise UsageError(f"alpha: expected a probability between 0 and 0.5, got {self.alpha:g}")
        if not 1 <= self.max_pairs <= self.looks[-1]:
            raise UsageError(f"max_pairs: expected 1 to {self.looks[-1]} pairs, got {self.max_pairs}")

    def spent(self, pairs: int) -> float:
        """The share of an alarm rate that is spent by the last look before this many pairs."""
        before = [look for look in self.looks if look < pairs]
        return (before[-1] / self.looks[-1]) ** self.rho if before else 0.0

    def shared(self, cases: int) -> PairPolicy:
        """The policy for each of `cases` judged cases, which share the alarm rate of the run."""
        return replace(self, alpha=min(self.alpha, self.false_discovery_rate / max(cases, 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPolicy(Tolerant):
    """The policy for one metric beside speed."""

    metric: str
    noise: float
    """Log sd that is assumed: between two runs that are the same, or of the ratio of a pair."""
    grain: float
    """Standard deviation that is assumed besides, in the metric's unit: what a small value has of noise."""
    trust: float
    """The assumed noise counts as much as this many runs or pairs."""
    smallest: bool
    """Whether the smallest value of several processes counts, instead of their centre."""
    harmless: float = 0.25
    """Less than elsewhere, so that a whole tolerance is seen."""

    @classmethod
    def of(
        cls,
        metric: Metric,
        alpha: float,
        *,
        pairs: bool = False,
        repeated: bool = False,
        varying: bool = False,
        alike: bool = False,
    ) -> MetricPolicy:
        """The policy of a metric against stored sessions, or over pairs, in which builds may have been repeated.

        `varying`: it is captured of a function, so mostly its own captures tell the noise, unless they were `alike`.
        """
        gate = metric.gate
        assert gate is not None  # noqa: S101 - a metric without one is refused before anything is measured
        name, noise = ("metric-pairs-1", gate.pairs) if pairs else ("metric-1", gate.noise)
        noise = gate.repeated_pairs if repeated else noise
        grain = (gate.captured or 0.0) if varying else gate.grain
        return cls(
            name=name,
            metric=metric.name,
            tolerance=gate.tolerance,
            noise=noise,
            grain=grain * math.sqrt(2) if pairs else grain,
            trust=OF_CAPTURES if varying and not alike else gate.trust,
            smallest=gate.smallest and not varying,
            alpha=alpha,
        )

    def assumed(self, before: float, now: float) -> float:
        """The log sd that is assumed of the ratio of these values: by their logarithmic mean, that of a difference."""
        change = (now - before) / before
        mean = before * change / math.log1p(change) if change else before
        return math.hypot(self.noise, self.grain / mean)
