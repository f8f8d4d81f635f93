"""The records of a run: frozen dataclasses that the rooms pass to one another."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ipexperf.case import Case
from ipexperf.errors import UsageError
from ipexperf.units import in_percent

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
KEPT = 4000
"""A launch record keeps this many latencies of requests, evenly spaced. Its metrics are computed from all."""
PRIMARY = "step_time"
"""The metric of speed: seconds per step, the median of a launch's samples: the typical step."""
MEAN = "mean_step"
"""The mean of a launch's samples, which throughput is made of."""
THROUGHPUT = "throughput"
"""The metric of speed that grows with it: items per second."""
FIGURE = "figure"
"""A number of another tool that is no time, in the unit and with the direction that its series has."""
Role = Literal["case", "twin", "reference", "against"]
"""The role of an arm in a round: a launch of its case, its twin, the reference once more for a part of a group, or
what the case in the next seat is compared with by `ab` or `--perf-against`."""
Schedule = Literal["together", "apart"]
"""How the arms of a round ran: in turns, or one after another."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The properties of a metric of accuracy: its name in narrow tables, and the bound of its changes."""

    brief: str
    bound: Literal["difference", "share", "factor"]
    """`difference`: absolute, of `Policy.accuracy_bound`; `share`: of the baseline, `Policy.loss_bound`; `factor`:
    `Policy.fidelity_factor`."""


@dataclass(frozen=True, slots=True)
class Column:
    """The column of a metric in the table of a run. It is left out if no case has a value."""

    title: str
    form: Callable[[float], str] | None = None
    """How a value is formatted. None: by its unit, without the unit if that is the title."""
    always: bool = False
    """True if the column is never left out, neither for want of values nor of room."""


@dataclass(frozen=True, slots=True)
class Gate:
    """How a metric is judged beside speed, if `--perf-gate` names it."""

    tolerance: float
    """The change for the worse that must be detected, as a fraction."""
    noise: float
    """The assumed log standard deviation between equal runs, until a case's own runs tell it."""
    pairs: float
    """The same for the ratio of two processes that are alive together."""
    trust: float
    """The assumed noise counts as much as this many runs or pairs of a case's own."""
    grain: float = 0.0
    """The noise of a small value, as a standard deviation in the metric's unit."""
    usual: bool = False
    """True if it is judged by default."""
    smallest: bool = False
    """True if the smallest of several values counts, because odd processes have a larger one. Else the median."""
    repeated: str = ""
    """The metric that pairs judge in its place: the quickest of several builds."""
    repeated_pairs: float = 0.03
    """The noise of that metric in pairs."""
    captured: float | None = None
    """Of counts of a captured step: the noise of a function's, as a standard deviation in the metric's unit. Captures
    of functions differ, as where the order of a set decides. Those of networks are alike."""
    relative_to: str = ""
    """Stored values count as multiples of this metric, so that a machine which is slower today changes nothing."""


TIME = Gate(0.10, noise=0.19, pairs=0.06, trust=2, grain=0.001)
"""Of a time that is measured once a process, so that the assumed noise deserves little trust."""
MEAN_STEP = Gate(0.05, noise=0.02, pairs=0.03, trust=6, usual=True, relative_to=PRIMARY)
"""Pairs judge the mean step as it comes, and sessions by what it is above the typical one. Its assumed noise is that of
launches in recordings of a shared machine (benchmarks/detection/recorded.csv)."""
MEMORY = Gate(0.01, noise=0.0003, pairs=0.0004, trust=20, grain=2**16, smallest=True)
"""Of memory in use: by the smallest process, because an odd process holds more."""
COUNT = Gate(0.01, noise=0.0002, pairs=0.0003, trust=20, smallest=True, captured=0.0)
"""Of counts, such as allocated bytes and calls of operators."""
RESIDENT_PEAK = Gate(0.10, noise=0.025, pairs=0.035, trust=20, grain=2**18)
"""Of peak resident memory, in which equal processes differ by 2 % (docs/results/gates.md). Not judged by default: in a
small network's inference they differ by a whole activation, up to 40 %."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: its unit, its good direction (None: a change either way is suspicious), and how it is judged."""

    name: str
    unit: str
    higher_is_better: bool | None
    accuracy: Accuracy | None = None
    """With this, the metric is judged, accepted into baselines, and shown as the accuracy of a case."""
    gate: Gate | None = None
    """How `--perf-gate` judges it. None: it is only recorded."""
    fresh: bool = False
    """True if only a fresh process can measure it: a forked one inherits loaded libraries and touched pages."""
    column: Column | None = None
    """With this, the table of a run shows it."""
    drawn: bool = False
    """True if the page of a case draws it through time."""
    occupied: bool = False
    """True if it is memory that a process occupies, by which the number of arms in a round is limited."""
    work: str = ""
    """What it counts, in words, if it is a part of the work of a step: another count is another network."""
    instances: Literal["largest", "sum", "none"] = "largest"
    """What several instances of a case have: the largest value, because users wait for the last of them, the sum of
    all, or no value."""

    def of_instances(self, values: Sequence[float]) -> float | None:
        """Return the value of a launch from those of its instances, or None if it has none."""
        if self.instances == "none":
            return None
        return sum(values) if self.instances == "sum" else max(values)

    @property
    def relative_to(self) -> str:
        """The metric whose multiples stored values count as, or an empty text."""
        return self.gate.relative_to if self.gate is not None else ""

    @property
    def repeated(self) -> str:
        """The metric that pairs judge in its place, or an empty text."""
        return self.gate.repeated if self.gate is not None else ""

    def of_launches(self, values: Sequence[float]) -> float:
        """Return the value of a run from those of its launches."""
        return min(values) if self.gate is not None and self.gate.smallest else self.median(values)

    def median(self, values: Sequence[float]) -> float:
        """Return the median. Between two rates it is their harmonic mean, so that it fits the median of the times."""
        if self.unit.endswith("/s") and len(values) % 2 == 0 and min(values, default=0) > 0:
            middle = len(values) // 2
            return statistics.harmonic_mean(sorted(values)[middle - 1 : middle + 1])
        return statistics.median(values)

    def __post_init__(self) -> None:
        if self.gate is not None and self.higher_is_better is None:
            raise UsageError(f"metric {self.name}: a gate needs to know which direction is worse")


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("step_time", "s", False, column=Column("step", always=True), drawn=True),
        Metric("mean_step", "s", False, gate=MEAN_STEP),
        Metric("throughput", "items/s", True, column=Column("items/s", always=True)),
        Metric("flop_rate", "FLOP/s", True),
        Metric("of_roof", "fraction", True, column=Column("roof", in_percent)),
        Metric("p50", "s", False, gate=TIME),
        Metric("p90", "s", False, gate=TIME),
        Metric("p99", "s", False, gate=TIME),
        Metric("cpu_time", "s", False, gate=TIME),
        Metric("import_time", "s", False, gate=TIME, fresh=True),
        Metric("prepare_time", "s", False, gate=replace(TIME, repeated="quickest_prepare"), fresh=True),
        Metric("warm_time", "s", False, gate=TIME),
        Metric("compile_time", "s", False, gate=replace(TIME, repeated="quickest_compile"), fresh=True),
        Metric("quickest_prepare", "s", False),
        Metric("quickest_compile", "s", False),
        Metric("build_time", "s", False, gate=TIME),
        Metric("optimise_time", "s", False, gate=TIME),
        Metric("trace_time", "s", False, gate=TIME),
        Metric("first_inference", "s", False, gate=TIME),
        Metric("page_faults", "1", False),
        Metric("step_flops", "FLOP", None, work="floating point operations"),
        Metric("parameters", "1", None, work="parameters"),
        Metric("step_python_calls", "1", False, gate=COUNT),
        Metric("step_operators", "1", False, gate=COUNT),
        Metric("step_kernels", "1", False, gate=COUNT),
        Metric("step_allocations", "1", False, gate=COUNT),
        Metric("graph_nodes", "1", False, gate=COUNT),
        Metric("generated_code", "bytes", False, gate=COUNT),
        Metric(
            *("peak_memory", "bytes", False),
            gate=RESIDENT_PEAK,
            fresh=True,
            drawn=True,
            occupied=True,
            instances="sum",
        ),
        Metric("held_memory", "bytes", False, gate=replace(MEMORY, usual=True), fresh=True, instances="none"),
        Metric("step_memory", "bytes", False, gate=replace(COUNT, usual=True, captured=2**12)),
        Metric("library_memory", "bytes", False),
        Metric("reserved_memory", "bytes", False, gate=MEMORY, occupied=True),
        Metric("device_time", "s", False),
        Metric("input_time", "s", False),
        Metric("frequency", "Hz", None),
        Metric("utilisation", "fraction", None),
        Metric("accuracy", "fraction", None, Accuracy("acc", "difference")),
        Metric("agreement", "fraction", None, Accuracy("agr", "difference")),
        Metric("fidelity", "relative rmse", None, Accuracy("rmse", "factor")),
        Metric("loss", "nat", None, Accuracy("loss", "share")),
        Metric("first_loss", "nat", None),
        Metric("trivial_accuracy", "fraction", None),
        Metric("perplexity", "tokens", None),
        Metric(FIGURE, "1", None, drawn=True),
    )
}


def accuracies() -> tuple[str, ...]:
    """Return the metrics of accuracy, the most telling first: tables show the first that was measured."""
    return tuple(name for name, metric in METRICS.items() if metric.accuracy is not None)


def parts_of_work() -> dict[str, str]:
    """Return the metrics that are the work of a step, each with its words."""
    return {name: metric.work for name, metric in METRICS.items() if metric.work}


@dataclass(frozen=True, slots=True)
class Sample:
    """A timed step, or the mean step of a block: wall time, process CPU time and run delay, in seconds."""

    wall: float
    cpu: float
    delay: float


@dataclass(frozen=True, slots=True)
class Check:
    """A check on a launch: what was found and what was expected."""

    name: str
    ok: bool
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.name}: found {self.found}, expected {self.expected}"

    @classmethod
    def of_all(cls, checks: Sequence[Check], part: str) -> Check:
        """Merge a check of several processes: it holds if it holds in each. `part` is what one of them is called."""
        texts = []
        for values in ([check.found for check in checks], [check.expected for check in checks]):
            each = "; ".join(f"{part} {number}: {value}" for number, value in enumerate(values))
            texts.append(values[0] if len(set(values)) == 1 else each)
        return cls(checks[0].name, all(check.ok for check in checks), *texts)


@dataclass(frozen=True, slots=True)
class Launch:
    """One worker process that ran a case: the unit of replication."""

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
    """Notes on how the numbers were taken, for people only."""
    fewer: str = ""
    """The samples taken of those requested, if steps were too slow for all: `7 of 20, steps take 2.4 s`."""
    settings: str = ""
    """The settings of machine and process that the case's first launch did not have: `nice: 0 -> 10`."""
    emulated: bool = False
    """True if the processor lacks instructions for the dtype and emulated it."""
    fingerprint: Mapping[str, Any] | None = None
    """The fingerprint from `proof.fingerprint`, or None if there is none."""
    against: Mapping[str, Any] | None = None
    """The fingerprint of the other arm in a pair."""
    answers: Mapping[str, Any] | None = None
    """The sketch of the answers from `proof.sketches`, or None if this launch has none."""

    @property
    def fewer_note(self) -> str:
        """The note on a launch with fewer samples than asked, or an empty text."""
        return self.fewer and f"ended with fewer samples than asked: {self.fewer}"


@dataclass(frozen=True, slots=True)
class Measurement:
    """All launches of one case in one run."""

    case: Case
    launches: tuple[Launch, ...]
    environment: Mapping[str, Any]
    started_at: str
    finished_at: str
    cut: str = ""
    """The reason why there are fewer launches than planned although none failed, or an empty text."""

    @property
    def counted(self) -> tuple[Launch, ...]:
        """The launches that count: all but contended ones that were repeated."""
        return tuple(x for x in self.launches if x.outcome != "contended")

    def values(self, metric: str) -> tuple[float, ...]:
        """Return the metric of every launch that succeeded, for statistics."""
        return tuple(x.metrics[metric] for x in self.launches if x.outcome == "ok" and metric in x.metrics)

    def median(self, metric: str) -> float | None:
        values, known = self.values(metric), METRICS.get(metric)
        return (known.median if known else statistics.median)(values) if values else None

    @property
    def of_run(self) -> dict[str, float]:
        """The value of the run for each metric, from the launches that succeeded."""
        return {name: METRICS[name].of_launches(self.values(name)) for name in self.metrics}

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that any launch has, in the order of METRICS."""
        return tuple(name for name in METRICS if self.values(name))

    @property
    def failure(self) -> str:
        """The reason why there is no measurement, or an empty text."""
        bad = [x for x in self.counted if x.outcome != "ok"]
        if not self.counted:
            return "" if self.cut else "nothing was launched"
        return f"{bad[0].outcome}: {bad[0].reason}" if bad else ""

    @property
    def never_began(self) -> str:
        """The reason why the case never began, through no fault of its own, or an empty text."""
        return "" if self.counted else self.cut

    @property
    def invalid(self) -> str:
        """The reason why the numbers are invalid (proof, accuracy), or an empty text."""
        for launch in self.counted:
            for kind, checks in (("proof", launch.proof), ("accuracy", launch.accuracy)):
                for check in checks:
                    if not check.ok:
                        return f"{kind} failed: {check}"
        return ""

    def fingerprint(self, launch: Launch) -> Mapping[str, Any] | None:
        """Return a launch's fingerprint: whole for the first launch of the case that has it, else only its digest."""
        digest = launch.fingerprint
        if digest is None:
            return None
        same = (x for x in self.counted if x.fingerprint and x.fingerprint["digest"] == digest["digest"])
        if next(same, None) is launch:
            return digest
        return {name: value for name, value in digest.items() if name not in ("structure", "times", "spread", "ran")}

    @property
    def lean(self) -> Measurement:
        """The measurement as the history stores it: without structures that an earlier launch has too."""
        launches = tuple(replace(launch, fingerprint=self.fingerprint(launch)) for launch in self.launches)
        return replace(self, launches=launches)

    @property
    def contended(self) -> str:
        """The reason why the machine was too busy during the measurement, or an empty text."""
        return next((f"machine contended: {x.contended}" for x in self.counted if x.contended), "")


@dataclass(frozen=True, slots=True)
class SeatRecord:
    """An arm of a round. `times` has the seconds per step of its turns, for each of its processes."""

    case: Case
    role: Role
    times: tuple[tuple[float, ...], ...]
    launch: int | None = None
    """The index of its launch. None for a twin or an additional reference."""


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """A round: arms that were measured together, so that any two have a ratio. The unit of intervals."""

    uid: str
    group: str
    """The name of the group: what its cases have in common."""
    number: int
    schedule: Schedule
    seats: tuple[SeatRecord, ...]
    started_at: str
    seconds: float
    turns: int = 0
    """The number of turns of each arm that count."""
    dropped: int = 0
    """The number of turns that do not count, because the machine was busy."""
