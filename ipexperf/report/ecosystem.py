"""pytest-benchmark: a case is one of its benchmarks, fed with its worker's samples, not with a pipe's time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ipexperf.result import Measurement, Verdict

DISPLAY = frozenset(
    f"--benchmark-{name}"
    for name in (
        "columns",
        "compare",
        "compare-fail",
        "cprofile",
        "group-by",
        "histogram",
        "name",
        "sort",
        "time-unit",
        "verbose",
    )
)
"""Who passes one of these wants to see pytest-benchmark's table."""


def asked(words: Iterable[str]) -> bool:
    """Whether these words of a command line ask for pytest-benchmark's table."""
    return any(word.partition("=")[0] in DISPLAY for word in words)


def others(groups: Iterable[tuple[str | None, Sequence[Any]]], ours: Collection[str]) -> list[tuple[str | None, Any]]:
    """The groups of pytest-benchmark's table without the benchmarks of these names, which our own table has."""
    left = [(group, [one for one in benchmarks if one["fullname"] not in ours]) for group, benchmarks in groups]
    return [(group, benchmarks) for group, benchmarks in left if benchmarks]


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
