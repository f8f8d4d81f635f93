"""Several workers of one case that answer requests at the same time, each on its own cores, as in a server."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ipexperf.case import Case
from ipexperf.conduct.conditions import Conditions
from ipexperf.conduct.launch import P99_SAMPLES, TIMES, figures, with_sample_note, with_wait_note
from ipexperf.conduct.worker import Worker
from ipexperf.errors import WorkerError
from ipexperf.result import KEPT, Check, Launch, Sample

LEAD_SECONDS = 0.25
"""A window begins this long after the request for it, so that every worker has received it."""
LATE_SHARE = 0.2
"""A launch is contended if a worker begins its window later than this share of it."""


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


class Instances:
    """The live workers of one launch. If any fails, the launch fails."""

    def __init__(self, conditions: Conditions) -> None:
        self.workers: list[Worker] = []
        self._conditions = conditions
        self._begun: list[dict[str, Any]] = []
        self._prepared: list[dict[str, Any]] = []
        self._warmed: list[dict[str, Any]] = []
        self._environments: list[dict[str, Any]] = []

    def begin(self, case: Case) -> None:
        """Ask all to import what the case needs, without waiting for the replies."""
        for worker, instance in zip(self.workers, self._conditions.instances, strict=True):
            worker.send("begin", case=case.to_json(), settings=asdict(instance.settings))

    def started(self) -> None:
        """Wait until all have imported it."""
        self._begun = self._replies(self._conditions.timeout)

    def prepare(self) -> dict[str, Any]:
        """Have all prepare at the same time, each on its cores. Return the first's environment, with all placements."""
        self._prepared = self._ask("prepare")
        self._environments = self._ask("environment")
        placements = [environment["placement"] for environment in self._environments]
        return {**self._environments[0], "placement": placements}

    def warm(self) -> None:
        self._warmed = self._ask("warm")

    def window(self, seconds: float) -> Window:
        """Let all of them answer requests for this many seconds, from the same moment on."""
        at = time.perf_counter() + LEAD_SECONDS
        for worker in self.workers:
            worker.send("serve", at=at, seconds=seconds)
        return Window(self._replies(self._conditions.timeout + seconds))

    def launch(
        self, index: int, windows: Sequence[Window], shares: Mapping[str, float], contended: str, more: Sequence[str]
    ) -> Launch:
        """The launch record of these windows, with the proof of every instance."""
        wall = sum(window.wall for window in windows)
        memory = sum(reply["peak_memory"] for reply in self._ask("memory"))
        proofs = self._ask("proof")
        replies = self._ask("metrics")
        # Only of the first, because they all run the same, and alone it is not disturbed.
        fingerprint = self.workers[0].ask("fingerprint")["fingerprint"]
        samples = [sample for window in windows for sample in window.samples()]
        late = max(window.late for window in windows)
        behind = f"an instance began {late:.0%} of a window late" if late > LATE_SHARE else ""
        # Users wait until the last of them is ready.
        last = {
            name: max(reply[name] for reply in reports)
            for reports in (self._begun, self._prepared, self._warmed)
            for name in TIMES
            if name in reports[0]
        }
        items = self._prepared[0]["items"]
        metrics = figures(samples, {**last, "items": items, "peak_memory": memory})
        metrics["throughput"] = items * len(samples) / wall
        gate = {
            **shares,
            "late": late,
            "steady": min(x["steady"] for x in self._warmed),
            "first_step": max(x["first_step"] for x in self._warmed),
        }
        conditions = self._conditions
        launch = Launch(
            index,
            "ok",
            samples=tuple(thinned(samples)),
            metrics={**metrics, **{name: max(x["metrics"][name] for x in replies) for name in replies[0]["metrics"]}},
            proof=(*merged_checks([reply["checks"] for reply in proofs]), check_cores(proofs, conditions)),
            gate=gate,
            contended="; ".join(filter(None, (contended, behind))),
            log=self.workers[0].log(),
            notes=(*conditions.notes, *requests_noted(len(samples)), *more, *_notes(replies)),
            emulated=any(reply["emulated"] for reply in replies),
            fingerprint=fingerprint,
        )
        return with_wait_note(with_sample_note(launch, samples, conditions), samples, conditions)

    def _ask(self, do: str, **request: Any) -> list[dict[str, Any]]:
        for worker in self.workers:
            worker.send(do, **request)
        return self._replies(self._conditions.timeout)

    def _replies(self, timeout: float) -> list[dict[str, Any]]:
        """Receive one reply from each, within one time limit for all."""
        replies, until = [], time.monotonic() + timeout
        for number, worker in enumerate(self.workers):
            try:
                replies.append(worker.receive(max(1.0, until - time.monotonic())))
            except WorkerError as error:  # noqa: PERF203 - adds which instance failed, and ends the launch
                raise WorkerError(error.outcome, f"instance {number}: {error.reason}", error.log) from error
        return replies


def _notes(replies: Sequence[dict[str, Any]]) -> list[str]:
    """The notes of all instances, without duplicates."""
    return list(dict.fromkeys(note for reply in replies for note in reply["notes"]))


def thinned(samples: Sequence[Sample]) -> list[Sample]:
    """At most KEPT samples, evenly spaced over all windows and workers."""
    if len(samples) <= KEPT:
        return list(samples)
    return [samples[number * len(samples) // KEPT] for number in range(KEPT)]


def requests_noted(requests: int) -> list[str]:
    """Notes on the number of requests."""
    results = []
    if requests < P99_SAMPLES:
        results.append(f"no p99: {requests} of the {P99_SAMPLES} requests that it needs")
    if requests > KEPT:
        results.append(f"{KEPT} of {requests} latencies are kept, evenly spaced; the numbers are of all of them")
    return results


def merged_checks(replies: Sequence[Sequence[dict[str, Any]]]) -> list[Check]:
    """Merge each check over all instances. It holds if it holds in every instance."""
    results = []
    for parts in zip(*replies, strict=True):
        checks = [Check(**part) for part in parts]
        texts = []
        for values in ([x.found for x in checks], [x.expected for x in checks]):
            text = "; ".join(f"instance {number}: {value}" for number, value in enumerate(values))
            texts.append(values[0] if len(set(values)) == 1 else text)
        results.append(Check(checks[0].name, all(check.ok for check in checks), *texts))
    return results


def check_cores(proofs: Sequence[dict[str, Any]], conditions: Conditions) -> Check:
    """Check that the instances ran on the cores they were given, and shared none."""
    actual = [core for proof in proofs for core in proof["placement"]["cores"]]
    given = [core for instance in conditions.instances for core in (instance.settings.placement or {})["cores"]]
    return Check(
        "instance_cores",
        sorted(actual) == sorted(given) and len(set(actual)) == len(actual),
        f"{len(proofs)} instances hold {len(actual)} cores, {len(set(actual))} of them different",
        f"{len(conditions.instances)} instances, each alone on its {len(given) // len(conditions.instances)}",
    )
