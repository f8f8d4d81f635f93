"""One launch: a fresh worker runs one case, and what it told becomes a record, however it ended."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from ipexperf.bench.kinds import Settings
from ipexperf.case import Case
from ipexperf.conduct import gate
from ipexperf.conduct.worker import Worker
from ipexperf.errors import WorkerError
from ipexperf.result import Check, Launch, Sample

CHUNK = 5
"""Samples asked for at a time: the stop rule is ours, and so is the order when two workers take turns."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """How launches are made in this run."""

    settings: Settings
    python: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 600.0
    samples: int = 20
    seconds: float = 1.0
    say: Callable[[str], None] = lambda _: None

    def worker(self) -> Worker:
        return Worker(self.python, self.variables, self.timeout, self.say)


def to_samples(raw: list[list[float]]) -> list[Sample]:
    return [Sample(*values) for values in raw]


def percentile(values: list[float], share: float) -> float:
    """The nearest-rank percentile: a value that was measured, never one between two."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def figures(samples: list[Sample], case: Case, told: Mapping[str, Any]) -> dict[str, float]:
    """A launch's numbers, one for each metric."""
    walls = [sample.wall for sample in samples]
    step = statistics.median(walls)
    return {
        "step_time": step,
        "throughput": case.batch / step,
        "p50": percentile(walls, 0.5),
        "p90": percentile(walls, 0.9),
        "cpu_time": statistics.median(sample.cpu for sample in samples),
        "prepare_time": told["prepare_time"],
        "warm_time": told["warm_time"],
        "peak_memory": float(told["peak_memory"]),
    }


def run(case: Case, index: int, conditions: Conditions) -> tuple[Launch, dict[str, Any]]:
    """Launches once. Accuracy is asked of the first launch alone: the same seed gives the same answer."""
    try:
        with conditions.worker() as worker:
            return _measured(worker, case, index, conditions)
    except WorkerError as error:
        return Launch(index, error.outcome, error.reason, log=error.log), {}  # type: ignore[arg-type]


def _measured(worker: Worker, case: Case, index: int, conditions: Conditions) -> tuple[Launch, dict[str, Any]]:
    told = worker.ask("prepare", case=case.to_json(), settings=asdict(conditions.settings))
    environment = worker.ask("environment")
    told.update(worker.ask("warm"))
    before = gate.read(worker.pid)
    samples: list[Sample] = []
    begin = time.monotonic()
    # Both a least count and a least time: few long steps are as little evidence as many short ones in an instant.
    while len(samples) < conditions.samples or time.monotonic() - begin < conditions.seconds:
        samples += to_samples(worker.ask("sample", count=CHUNK)["samples"])
        if len(samples) >= CHUNK and time.monotonic() - begin > 12 * conditions.seconds:
            break  # steps of seconds: what there is by now must do
    shares = gate.between(before, gate.read(worker.pid), samples)
    told.update(worker.ask("memory"))
    proof = [Check(**check) for check in worker.ask("proof")["checks"]]
    metrics, accuracy = figures(samples, case, told), []
    if index == 0:
        answer = worker.ask("accuracy")
        metrics.update(answer["metrics"])
        accuracy = [Check(**check) for check in answer["checks"]]
    launch = Launch(
        index,
        "ok",
        samples=tuple(samples),
        block=told["block"],
        metrics=metrics,
        accuracy=tuple(accuracy),
        proof=tuple(proof),
        gate={**shares, "steady": told["steady"], "first_step": told["first_step"]},
        contended=gate.contended(shares),
        log=worker.log(),
    )
    return launch, environment
