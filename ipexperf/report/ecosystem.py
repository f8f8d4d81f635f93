"""pytest-benchmark: a case is one of its benchmarks, fed with its worker's samples, not with a pipe's time."""

from __future__ import annotations

from typing import Any

from ipexperf.result import Measurement, Verdict


def feed(benchmark: Any, measurement: Measurement, verdict: Verdict) -> None:
    """Gives the benchmark fixture every sample of every launch. What it shows is for people, not for verdicts."""
    case = measurement.case
    samples = [sample for launch in measurement.counted for sample in launch.samples]
    if not samples or benchmark.disabled:
        benchmark.skipped = True
        return
    benchmark.group = benchmark.group or f"{case.model}-{case.mode}"
    benchmark.extra_info.update(
        {"case": case.to_json(), "verdict": verdict.outcome, "launches": len(measurement.counted)}
        | {name: measurement.median(name) for name in measurement.metrics}
    )
    # Samples are seconds a step already, whatever the block: one iteration each.
    benchmark._mode = "ipexperf"  # noqa: SLF001 - pytest-benchmark has no public way to hand samples over
    stats = benchmark._make_stats(1)  # noqa: SLF001 - as above
    for sample in samples:
        stats.update(sample.wall)
