"""Launches of several workers that answered requests at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.launch import P99_SAMPLES
from ipexperf.result import KEPT, METRICS, Check, Sample


@dataclass(frozen=True, slots=True)
class Window:
    """A time in which all workers answer requests. Has one reply from each."""

    replies: Sequence[dict[str, Any]]

    @property
    def latencies(self) -> list[float]:
        return [latency for reply in self.replies for latency in reply["latencies"]]

    @property
    def wall(self) -> float:
        """Seconds from the first worker's begin to the last worker's end. Their clocks are the same."""
        return float(max(reply["end"] for reply in self.replies) - min(reply["begin"] for reply in self.replies))

    @property
    def late(self) -> float:
        """How much later than the first the last worker began, as a share of the window."""
        begins = [reply["begin"] for reply in self.replies]
        return float(max(begins) - min(begins)) / self.wall

    def samples(self) -> list[Sample]:
        """A sample for each request: its latency, and its share of the worker's CPU time and run delay."""
        return [
            Sample(latency, reply["cpu"] / len(reply["latencies"]), reply["delay"] / len(reply["latencies"]))
            for reply in self.replies
            for latency in reply["latencies"]
        ]


def merged_metrics(replies: Sequence[dict[str, Any]]) -> dict[str, float]:
    merged = {
        name: METRICS[name].of_instances([reply["metrics"][name] for reply in replies])
        for name in replies[0]["metrics"]
        if name in METRICS
    }
    return {name: value for name, value in merged.items() if value is not None}


def thinned(samples: Sequence[Sample]) -> list[Sample]:
    """At most KEPT samples, evenly spaced over all windows and workers."""
    if len(samples) <= KEPT:
        return list(samples)
    return [samples[number * len(samples) // KEPT] for number in range(KEPT)]


def requests_noted(requests: int) -> list[str]:
    results = []
    if requests < P99_SAMPLES:
        results.append(f"no p99: {requests} of the {P99_SAMPLES} requests that it needs")
    if requests > KEPT:
        results.append(f"{KEPT} of {requests} latencies are kept, evenly spaced; the numbers are of all of them")
    return results


def merged_checks(replies: Sequence[dict[str, Any]]) -> list[Check]:
    by_instance = [[Check(**check) for check in reply["checks"]] for reply in replies]
    return [Check.of_all(checks, "instance") for checks in zip(*by_instance, strict=True)]


def check_cores(proofs: Sequence[dict[str, Any]], conditions: Conditions) -> Check:
    """Check that the instances ran on the cores they were given, and shared none."""
    actual = [core for proof in proofs for core in proof["placement"]["cores"]]
    assigned = [core for instance in conditions.instances for core in (instance.settings.placement or {})["cores"]]
    return Check(
        "instance_cores",
        sorted(actual) == sorted(assigned) and len(set(actual)) == len(actual),
        f"{len(proofs)} instances hold {len(actual)} cores, {len(set(actual))} of them different",
        f"{len(conditions.instances)} instances, each alone on its {len(assigned) // len(conditions.instances)}",
    )
