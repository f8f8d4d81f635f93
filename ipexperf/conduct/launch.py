"""One launch: a fresh worker runs one case, and what it told becomes a record, however it ended."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ipexperf.bench.kinds import Settings
from ipexperf.bench.outcome import told as told_by
from ipexperf.case import Case
from ipexperf.conduct.pulse import NO_PULSE, Pulse
from ipexperf.conduct.server import Server
from ipexperf.conduct.watch import Watch
from ipexperf.conduct.worker import Worker
from ipexperf.conduct.yardstick import Stick, beside
from ipexperf.errors import WorkerError
from ipexperf.judge import yardstick as yardsticks
from ipexperf.result import FEWER, Check, Launch, LaunchOutcome, Sample

CHUNK = 5
"""Samples asked for at a time: the stop rule is ours, and so is the order when two workers take turns."""
PATIENCE = 12
"""After so many times the asked seconds sampling ends, with fewer samples than were asked for."""
P99_SAMPLES = 662
"""So many samples a p99 needs. With n of them, the chance that at most one lies beyond the true p99 is
0.99^n + n * 0.01 * 0.99^(n-1). 662 is the smallest n for which that is below 1 %, so that the second largest sample is
an upper bound of it with 99 % confidence. MLPerf's load generator asks for the same number."""
TIMES = ("import_time", "prepare_time", "warm_time")
"""What a worker tells of the time before its samples, as far as its mode has it."""
RELATIVES = ("relative_time", "yardstick_time")
"""What a yardstick tells, where one took turns with the case."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """How launches are made in this run."""

    settings: Settings
    python: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    accelerator: bool = False
    """Whether the case is on a device that can be lost: what its runtime printed last is then looked at."""
    timeout: float = 600.0
    samples: int = 20
    seconds: float = 1.0
    say: Callable[[str], None] = lambda _: None
    server: Server | None = None
    """What workers are forked from; None: they are started fresh."""
    notes: tuple[str, ...] = ()
    """What every launch says of how it was started."""
    yardstick: str | None = None
    """The interpreter of the yardstick that takes turns with the case; None: it runs alone."""
    instances: tuple[Conditions, ...] = ()
    """Of each worker, where several answer at the same time."""
    pulse: Pulse = NO_PULSE
    """What says how quick the machine is, before and after."""

    def given(self, **more: Any) -> Conditions:
        """The same, with settings that the worker is told beside the others."""
        instances = tuple(instance.given(**more) for instance in self.instances)
        return replace(self, settings=replace(self.settings, **more), instances=instances)

    def worker(self) -> Worker:
        return Worker(self.python, self.variables, self.timeout, self.say, self.server)


def to_samples(raw: list[list[float]]) -> list[Sample]:
    return [Sample(*values) for values in raw]


def percentile(values: list[float], share: float) -> float:
    """The nearest-rank percentile: a value that was measured, never one between two."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def figures(samples: list[Sample], told: Mapping[str, Any]) -> dict[str, float]:
    """A launch's numbers, one for each metric."""
    walls = [sample.wall for sample in samples]
    step = statistics.median(walls)
    return {
        "step_time": step,
        "throughput": told["items"] / step,
        **percentiles(walls, told.get("block", 1)),
        "cpu_time": statistics.median(sample.cpu for sample in samples),
        **{name: told[name] for name in (*TIMES, *RELATIVES) if name in told},
        "peak_memory": float(told["peak_memory"]),
    }


def percentiles(walls: list[float], block: int) -> dict[str, float]:
    """Those that there are samples enough for: one has none, and the mean of a block hides a slow step from p99."""
    if len(walls) == 1:
        return {}
    found = {"p50": percentile(walls, 0.5), "p90": percentile(walls, 0.9)}
    return {**found, "p99": percentile(walls, 0.99)} if len(walls) >= P99_SAMPLES and block == 1 else found


def notes(samples: list[Sample], conditions: Conditions) -> tuple[str, ...]:
    """What a reader of a launch's numbers must know of how they were taken."""
    if len(samples) >= conditions.samples:
        return ()
    step = statistics.median(sample.wall for sample in samples)
    return (f"{FEWER}: {len(samples)} of {conditions.samples}, steps take {step:.3g} s",)


def run(
    case: Case, index: int, conditions: Conditions, *, accuracy: bool, final: bool = True
) -> tuple[Launch, dict[str, Any]]:
    """Launches once. Accuracy is asked of one launch of a case: the same seed gives the same answer.

    `final`: as in `accurate`.
    """
    try:
        with conditions.worker() as worker:
            done, environment = _measured(worker, case, index, conditions)
            return (accurate(worker, done, final=final) if accuracy else done), environment
    except WorkerError as error:
        return Launch(index, *ended(error, conditions.accelerator), log=error.log), {}


def ended(error: WorkerError, accelerator: bool) -> tuple[LaunchOutcome, str]:  # noqa: FBT001 - there is no other
    """How a launch ended, and why. An accelerator's runtime may end the process itself: its last words count."""
    outcome: LaunchOutcome = error.outcome  # type: ignore[assignment]
    if outcome in ("crashed", "timed_out") and accelerator:
        for line in error.log.splitlines():
            if named := told_by(line):
                return named, f"{error.reason}: {line.strip()}"
    return outcome, error.reason


def _measured(worker: Worker, case: Case, index: int, conditions: Conditions) -> tuple[Launch, dict[str, Any]]:
    told = worker.ask("prepare", case=case.to_json(), settings=asdict(conditions.settings))
    environment = worker.ask("environment")
    watch = Watch(case, conditions)
    told.update({"block": 1} if told["cold"] else worker.ask("warm"))
    with _yardstick(case, conditions) as stick:
        watch.begin(worker.pid, *([stick.worker.pid] if stick else []))
        # A cold start is one sample, and the launches of its case are how often it is measured.
        samples = _asked(worker, 1) if told["cold"] else _sampled(worker, conditions, stick)
        seen, disturbed = watch.end(samples)
        told.update(stick.metrics() if stick else {})
        environment.update({yardsticks.SECTION: stick.told} if stick else {})
    told.update(worker.ask("memory"))
    few = () if told["cold"] else notes(samples, conditions)
    done = record(index, samples, told, seen, worker)
    return proven(worker, replace(done, contended=disturbed, notes=(*conditions.notes, *few))), environment


def record(
    index: int, samples: list[Sample], told: Mapping[str, Any], shares: Mapping[str, float], worker: Worker
) -> Launch:
    """The launch with the numbers of its samples, of what its worker told, and of the machine meanwhile."""
    return Launch(
        index,
        "ok",
        samples=tuple(samples),
        block=told["block"],
        metrics=figures(samples, told),
        gate={**shares, **{name: told[name] for name in ("steady", "first_step") if name in told}},
        log=worker.log(),
    )


def proven(worker: Worker, launch: Launch) -> Launch:
    """The launch with the evidence that it ran as its label says, and what its mode and device measure beside."""
    proof = tuple(Check(**check) for check in worker.ask("proof")["checks"])
    more = worker.ask("metrics")
    ran = worker.ask("fingerprint")["fingerprint"]
    metrics, told = {**launch.metrics, **more["metrics"]}, (*launch.notes, *more["notes"])
    return replace(launch, metrics=metrics, proof=proof, notes=told, fingerprint=ran, log=worker.log())


def _yardstick(case: Case, conditions: Conditions) -> contextlib.AbstractContextManager[Stick | None]:
    """The yardstick that takes turns with the case, where it has one."""
    if conditions.yardstick is None:
        return contextlib.nullcontext()
    settings = conditions.settings
    request = {"threads": settings.threads, "placement": settings.placement}
    return beside(case, conditions.yardstick, request, conditions.timeout)


def _asked(worker: Worker, count: int) -> list[Sample]:
    return to_samples(worker.ask("sample", count=count)["samples"])


def _sampled(worker: Worker, conditions: Conditions, stick: Stick | None) -> list[Sample]:
    """Samples until there are enough, or until patience ends; with a yardstick in turns with it."""
    samples: list[Sample] = []
    begin = time.monotonic()
    # Both a least count and a least time: few long steps are as little evidence as many short ones in an instant.
    while len(samples) < conditions.samples or time.monotonic() - begin < conditions.seconds:
        samples += stick.turn(lambda count: _asked(worker, count)) if stick else _asked(worker, CHUNK)
        if len(samples) >= CHUNK and time.monotonic() - begin > PATIENCE * conditions.seconds:
            break  # steps of seconds: what there is by now must do, and the launch says so
    return samples


def accurate(worker: Worker, launch: Launch, *, final: bool = True) -> Launch:
    """The launch with what its worker says of its results.

    A contended one that is not `final` is not asked: another will be, and training to the end takes minutes.
    """
    if launch.contended and not final:
        return launch
    answer = worker.ask("accuracy")
    checks = tuple(Check(**check) for check in answer["checks"])
    return replace(launch, metrics={**launch.metrics, **answer["metrics"]}, accuracy=checks, log=worker.log())
