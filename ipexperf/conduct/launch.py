"""The record of a launch: the figures of its samples, its evidence, and how it ended."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ipexperf.bench.outcome import ABSENT, indicated
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.worker import Worker
from ipexperf.errors import WorkerError
from ipexperf.judge.stalls import undisturbed
from ipexperf.redaction import redacted
from ipexperf.result import MEAN, METRICS, THROUGHPUT, Check, Launch, LaunchOutcome, Sample

P99_SAMPLES = 662
"""Least number of samples for a p99. With n of them, the chance that at most one lies beyond the true p99 is
0.99^n + n * 0.01 * 0.99^(n-1). 662 is the smallest n for which that is below 1 %, so that the second largest sample is
an upper bound of it with 99 % confidence. MLPerf's load generator asks for the same number."""
IDLE = 0.5
"""A step mostly waits if its process used and wanted less than this share of one core."""


def to_samples(raw: list[list[float]]) -> list[Sample]:
    return [Sample(*values) for values in raw]


def percentile(values: list[float], share: float) -> float:
    """The nearest-rank percentile: a value that was measured, never one between two."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def of_samples(samples: list[Sample], items: int, block: int = 1) -> dict[str, float]:
    """The metrics that are made of a launch's samples."""
    walls = [sample.wall for sample in samples]
    mean = statistics.fmean(undisturbed(samples))
    return {
        "step_time": statistics.median(walls),
        MEAN: mean,
        THROUGHPUT: items / mean,
        **percentiles(walls, block),
        "cpu_time": statistics.median(sample.cpu for sample in samples),
    }


def percentiles(walls: list[float], block: int) -> dict[str, float]:
    """The percentiles. A single sample has none. A p99 needs P99_SAMPLES, and single steps rather than blocks."""
    if len(walls) == 1:
        return {}
    values = {"p50": percentile(walls, 0.5), "p90": percentile(walls, 0.9)}
    return {**values, "p99": percentile(walls, 0.99)} if len(walls) >= P99_SAMPLES and block == 1 else values


def with_sample_note(launch: Launch, samples: list[Sample], conditions: Conditions) -> Launch:
    """The launch, with a note if it has fewer samples than asked for."""
    if len(samples) >= conditions.samples:
        return launch
    step = statistics.median(sample.wall for sample in samples)
    launch = replace(launch, fewer=f"{len(samples)} of {conditions.samples}, steps take {step:.3g} s")
    return replace(launch, notes=(launch.fewer_note, *launch.notes))


def with_wait_note(launch: Launch, samples: list[Sample], conditions: Conditions) -> Launch:
    """The launch, with a note if its steps mostly waited, as for a sleep. On an accelerator they wait for the device.

    What the process waited for a core counts as if it had run: that is the machine's doing.
    """
    wall = sum(sample.wall for sample in samples)
    used = sum(sample.cpu for sample in samples)
    wanted = used + sum(sample.delay for sample in samples)
    if conditions.accelerator or not wanted < IDLE * wall:
        return launch
    note = f"mostly waited in its steps: its process used {100 * used / wall:.0f} % of one core"
    return replace(launch, notes=(*launch.notes, note))


def how_it_ended(error: WorkerError, accelerator: bool) -> tuple[LaunchOutcome, str]:  # noqa: FBT001 - there is no other
    """The outcome of a launch that failed, and why. An accelerator's runtime may end the process: then read its log."""
    outcome: LaunchOutcome = "error" if error.outcome == ABSENT else error.outcome  # type: ignore[assignment]
    if outcome in ("crashed", "timed_out") and accelerator:
        for line in error.log.splitlines():
            if named := indicated(line):
                return named, f"{error.reason}: {line.strip()}"
    return outcome, error.reason


def record(
    index: int, samples: list[Sample], reply: Mapping[str, Any], shares: Mapping[str, float], worker: Worker
) -> Launch:
    """The launch with the metrics of its samples and of its worker's replies, and what the machine did meanwhile."""
    return Launch(
        index,
        "ok",
        samples=tuple(samples),
        block=reply["block"],
        metrics={**of_samples(samples, reply["items"], reply["block"]), **reply["metrics"]},
        gate={**shares, **{name: reply[name] for name in ("steady", "first_step") if name in reply}},
        log=worker.log(),
    )


def with_proof(worker: Worker, launch: Launch, *, labelled: bool = True) -> Launch:
    """The launch with its proof, its fingerprint, and the metrics of its mode and device.

    `labelled`: the label of the case promises a dtype, of which there must be a check.
    """
    evidence = worker.ask("proof")
    proof = _checks(evidence)
    if labelled and not any(check.name == "dtype" for check in proof):
        proof = (*proof, Check("dtype", ok=False, found="not proven", expected="a check of it by the mode"))
    seen = worker.ask("fingerprint")
    return replace(
        launch,
        metrics={**launch.metrics, **evidence["metrics"], **seen["metrics"]},
        proof=proof,
        notes=(*launch.notes, *map(redacted, evidence["notes"])),
        emulated=evidence["emulated"],
        fingerprint=seen["fingerprint"],
        log=worker.log(),
    )


def _checks(reply: Mapping[str, Any]) -> tuple[Check, ...]:
    """The checks of a reply, whose texts may be the user's own."""
    checks = (Check(**check) for check in reply["checks"])
    return tuple(replace(check, found=redacted(check.found), expected=redacted(check.expected)) for check in checks)


def not_fresh(launch: Launch, **how: float) -> Launch:
    """The launch of a process that did not start for it, without what only a fresh one can measure.

    `how` says in its gate how it started.
    """
    fresh = {metric.name for metric in METRICS.values() if metric.fresh}
    metrics = {name: value for name, value in launch.metrics.items() if name not in fresh}
    return replace(launch, metrics=metrics, gate={**launch.gate, **how})


def with_accuracy(worker: Worker, launch: Launch, *, final: bool = True, labelled: bool = True) -> Launch:
    """The launch with its accuracy, of which there must be a check if the case is `labelled`.

    A contended launch that is not `final` gets none: it is measured again, and training to the end takes minutes.
    """
    if launch.contended and not final:
        return launch
    answer = worker.ask("accuracy")
    checks = _checks(answer)
    if labelled and not checks:
        checks = (Check("accuracy", ok=False, found="not checked", expected="a check of the results by the mode"),)
    return replace(
        launch,
        metrics={**launch.metrics, **answer["metrics"]},
        accuracy=checks,
        answers=answer.get("answers"),
        notes=tuple(dict.fromkeys((*launch.notes, *map(redacted, answer.get("notes", ()))))),
        log=worker.log(),
    )
