"""pytest-benchmark: each case is one of its benchmarks, with the samples that workers took."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ipexperf.result import Measurement
from ipexperf.verdict import Verdict

NAMES = "columns compare compare-fail cprofile group-by histogram name sort time-unit verbose"
DISPLAY = frozenset(f"--benchmark-{name}" for name in NAMES.split())
"""Options that ask for pytest-benchmark's table."""


def table_requested(words: Iterable[str]) -> bool:
    """Whether these command line words ask for pytest-benchmark's table."""
    return any(word.partition("=")[0] in DISPLAY for word in words)


def without_ours(
    groups: Iterable[tuple[str | None, Sequence[Any]]], ours: Collection[str]
) -> list[tuple[str | None, Any]]:
    """The groups of pytest-benchmark's table without these benchmarks, which our own table has."""
    left = [
        (group, [benchmark for benchmark in benchmarks if benchmark["fullname"] not in ours])
        for group, benchmarks in groups
    ]
    return [(group, benchmarks) for group, benchmarks in left if benchmarks]


def feed(benchmark: Any, measurement: Measurement, verdict: Verdict) -> None:
    """Give the benchmark fixture every sample of every launch. It shows them; verdicts do not depend on it."""
    case = measurement.case
    samples = [sample for launch in measurement.counted for sample in launch.samples]
    if not samples or benchmark.disabled:
        benchmark.skipped = True
        return
    benchmark.group = benchmark.group or case.group
    benchmark.extra_info.update(
        {"case": case.to_json(), "verdict": verdict.outcome, "launches": len(measurement.counted)}
        | {name: measurement.median(name) for name in measurement.metrics}
    )
    # Samples are seconds per step, whatever the block, so each is one iteration.
    benchmark._mode = "ipexperf"  # noqa: SLF001 - pytest-benchmark has no public way to hand samples over
    stats = benchmark._make_stats(1)  # noqa: SLF001 - as above
    for sample in samples:
        stats.update(sample.wall)
