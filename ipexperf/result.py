"""What a run produces: plain frozen records, the only things that travel between rooms."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ipexperf.case import Case

LaunchOutcome = Literal[
    "ok",
    "contended",
    "error",
    "crashed",
    "timed_out",
    "out_of_memory",
    "device_lost",
    "import_error",
    "version_mismatch",
    "interrupted",
]
Outcome = Literal[
    "ok",
    "improved",
    "regressed",
    "inconclusive",
    "no_baseline",
    "not_comparable",
    "invalid",
    "failed",
    "platform_shift",
]


Role = Literal["case", "twin", "reference"]
"""What an arm is in a round: a launch of its case, the same again beside it, or what a part of the group is held
against once more."""
Schedule = Literal["together", "apart"]
"""Whether the arms of a round were alive together and took turns, or followed one another."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What a number means: its unit in base units, and which way is good (None: both ways are suspicious)."""

    name: str
    unit: str
    higher_is_better: bool | None


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("step_time", "s", False),
        Metric("throughput", "items/s", True),
        Metric("flop_rate", "FLOP/s", True),
        Metric("byte_rate", "bytes/s", True),
        Metric("of_roof", "fraction", True),
        Metric("p50", "s", False),
        Metric("p90", "s", False),
        Metric("p99", "s", False),
        Metric("cpu_time", "s", False),
        Metric("import_time", "s", False),
        Metric("prepare_time", "s", False),
        Metric("warm_time", "s", False),
        Metric("build_time", "s", False),
        Metric("optimise_time", "s", False),
        Metric("trace_time", "s", False),
        Metric("first_inference", "s", False),
        Metric("relative_time", "yardsticks", False),
        Metric("yardstick_time", "s", None),
        Metric("peak_memory", "bytes", False),
        Metric("library_memory", "bytes", False),
        Metric("reserved_memory", "bytes", False),
        Metric("device_time", "s", False),
        Metric("input_time", "s", False),
        Metric("frequency", "Hz", None),
        Metric("utilisation", "fraction", None),
        Metric("accuracy", "fraction", None),
        Metric("trivial_accuracy", "fraction", None),
        Metric("loss", "nat", None),
        Metric("fidelity", "relative rmse", None),
        Metric("agreement", "fraction", None),
        Metric("perplexity", "tokens", None),
    )
}
PRIMARY = "step_time"
"""The metric that is judged for speed: seconds a step, the median of a launch's samples."""
RELATIVE = "relative_time"
"""What is judged in its place where a yardstick took turns with the case: a step, in steps of the yardstick."""


FEWER = "ended with fewer samples than asked"
"""How the note of a launch begins whose steps were too slow for the samples that were asked for."""
EMULATED = "emulated its dtype"
"""How the note of a launch begins whose processor has no instructions for the dtype: its speed is not the dtype's."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed step, or the mean step of a block: wall, process CPU time and run delay, in seconds a step."""

    wall: float
    cpu: float
    delay: float


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that had to be true of a launch, what was found and what was expected."""

    name: str
    ok: bool
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.name}: found {self.found}, expected {self.expected}"


@dataclass(frozen=True, slots=True)
class Launch:
    """One fresh worker process that ran one case: the unit of replication."""

    index: int
    outcome: LaunchOutcome
    reason: str = ""
    samples: tuple[Sample, ...] = ()
    block: int = 1
    metrics: Mapping[str, float] = field(default_factory=dict)
    accuracy: tuple[Check, ...] = ()
    proof: tuple[Check, ...] = ()
    gate: Mapping[str, float] = field(default_factory=dict)
    contended: str = ""
    log: str = ""
    notes: tuple[str, ...] = ()
    """What a reader of the numbers must know of how they were taken, such as `FEWER: 7 of 20`."""
    fingerprint: Mapping[str, Any] | None = None
    """What ran, as `bench.fingerprint` wrote it down; None: nothing could be looked at."""
    against: Mapping[str, Any] | None = None
    """What the other arm ran, where this is one of a pair that was looked at."""
    roof: Mapping[str, Any] | None = None
    """What `of_roof` is a part of: the ceilings of its dtype and of memory, and which of them binds; None: unknown."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """All launches of one case in one run."""

    case: Case
    launches: tuple[Launch, ...]
    environment: Mapping[str, Any]
    started_at: str
    finished_at: str
    cut: str = ""
    """Why there are fewer launches than were planned, though none of them failed, or an empty text."""

    @property
    def counted(self) -> tuple[Launch, ...]:
        """The launches that are the measurement: not those that were contended, and measured again."""
        return tuple(x for x in self.launches if x.outcome != "contended")

    def values(self, metric: str) -> tuple[float, ...]:
        """The metric of every launch that ended well: the numbers that statistics may see."""
        return tuple(x.metrics[metric] for x in self.launches if x.outcome == "ok" and metric in x.metrics)

    def median(self, metric: str) -> float | None:
        values = self.values(metric)
        return statistics.median(values) if values else None

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics that any launch measured, in the order of METRICS."""
        return tuple(name for name in METRICS if self.values(name))

    @property
    def failure(self) -> str:
        """Why there is no measurement, or an empty text."""
        bad = [x for x in self.counted if x.outcome != "ok"]
        if not self.counted:
            return "" if self.cut else "nothing was launched"
        return f"{bad[0].outcome}: {bad[0].reason}" if bad else ""

    @property
    def never_began(self) -> str:
        """Why the case has no launch that counts, which says nothing of it, or an empty text."""
        return "" if self.counted else self.cut

    @property
    def invalid(self) -> str:
        """Why the numbers are no numbers to celebrate (proof, accuracy), or an empty text."""
        for launch in self.counted:
            for kind, checks in (("proof", launch.proof), ("accuracy", launch.accuracy)):
                for check in checks:
                    if not check.ok:
                        return f"{kind} failed: {check}"
        return ""

    @property
    def contended(self) -> str:
        """Why the machine was not ours while this was measured, or an empty text."""
        return next((f"machine contended: {x.contended}" for x in self.counted if x.contended), "")


@dataclass(frozen=True, slots=True)
class SeatRecord:
    """What one arm of a round did. `times` holds, for each of its processes, the seconds a step of its turns."""

    case: Case
    role: Role
    times: tuple[tuple[float, ...], ...]
    launch: int | None = None
    """Which launch of its case it was; None for an arm that is only there for the others to be held against."""


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """Arms that were measured beside one another, so that any two of them have a ratio: the unit of its interval."""

    uid: str
    group: str
    """What its cases have in common, in words."""
    number: int
    schedule: Schedule
    seats: tuple[SeatRecord, ...]
    started_at: str
    seconds: float
    turns: int = 0
    """How many turns of each arm count."""
    dropped: int = 0
    """How many do not: the machine was busy with something else."""


@dataclass(frozen=True, slots=True)
class Structure:
    """What the judge says of what ran, beside speed and accuracy: it has no noise, and is no alarm by itself."""

    outcome: Literal["same", "changed", "unstable", "unknown"]
    reason: str = ""
    changes: tuple[str, ...] = ()
    """What changed, in words, the largest share of the time difference first."""
    fails: bool = False
    """Whether it fails the test: a changed one does where that was asked for."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge says of one case, with its reason. `ratio` is the slowdown: above 1 is slower."""

    outcome: Outcome
    reason: str
    metric: str = PRIMARY
    ratio: float | None = None
    lo: float | None = None
    hi: float | None = None
    p_value: float | None = None
    mde: float | None = None
    policy: str = ""
    baseline: Mapping[str, Any] | None = None
    contended: bool = False
    """Invalid because of the machine's other work, not because of the case: nothing was shown to be wrong."""
    structure: Structure | None = None
    """What became of what ran; None: nobody looked."""

    @property
    def fails(self) -> bool:
        """Whether this verdict fails the test: only what is known to be wrong does."""
        structure = self.structure is not None and self.structure.fails
        return structure or (self.outcome in ("regressed", "invalid", "failed") and not self.contended)
