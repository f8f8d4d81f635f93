"""One launch of several workers that answer at the same time, each on cores of its own: what a server's users see."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ipexperf.case import Case
from ipexperf.conduct.launch import P99_SAMPLES, PATIENCE, TIMES, Conditions, accurate, ended, figures, notes
from ipexperf.conduct.watch import Watch
from ipexperf.conduct.worker import Worker
from ipexperf.errors import WorkerError
from ipexperf.result import Check, Launch, Sample

LEAD_SECONDS = 0.25
"""A window begins so long after it was asked for: by then every worker has heard of it."""
LATE_SHARE = 0.2
"""A worker that begins its window later than this share of it leaves the others alone: the machine was not ours."""
KEPT = 4000
"""A launch keeps so many of its latencies, evenly spaced; its numbers are of all of them."""


@dataclass(frozen=True, slots=True)
class Window:
    """What all workers did from one moment on: one reply of each."""

    told: Sequence[dict[str, Any]]

    @property
    def latencies(self) -> list[float]:
        return [latency for reply in self.told for latency in reply["latencies"]]

    @property
    def wall(self) -> float:
        """From the first worker's begin to the last one's end, on the clock that they share."""
        return float(max(reply["end"] for reply in self.told) - min(reply["begin"] for reply in self.told))

    @property
    def late(self) -> float:
        """How much later than the first the last worker began, as a share of the window."""
        begins = [reply["begin"] for reply in self.told]
        return float(max(begins) - min(begins)) / self.wall

    def samples(self) -> list[Sample]:
        """Each request's latency, with its share of what its worker took in the window."""
        return [
            Sample(latency, reply["cpu"] / len(reply["latencies"]), reply["delay"] / len(reply["latencies"]))
            for reply in self.told
            for latency in reply["latencies"]
        ]


def run(
    case: Case, index: int, conditions: Conditions, *, accuracy: bool, final: bool = True
) -> tuple[Launch, dict[str, Any]]:
    """Launches once. The failure of any instance is the launch's, and ends them all. `final`: as in `accurate`."""
    try:
        with contextlib.ExitStack() as stack:
            workers = [stack.enter_context(instance.worker()) for instance in conditions.instances]
            done, environment = _measured(workers, case, index, conditions)
            return (accurate(workers[0], done, final=final) if accuracy else done), environment
    except WorkerError as error:
        return Launch(index, *ended(error, conditions.accelerator), log=error.log), {}


def _replies(workers: Sequence[Worker], timeout: float) -> list[dict[str, Any]]:
    """One reply of each, within one time for all."""
    found, until = [], time.monotonic() + timeout
    for number, worker in enumerate(workers):
        try:
            found.append(worker.receive(max(1.0, until - time.monotonic())))
        except WorkerError as error:  # noqa: PERF203 - it is told whose it is, and ends the launch
            raise WorkerError(error.outcome, f"instance {number}: {error.reason}", error.log) from error
    return found


def _ask(workers: Sequence[Worker], conditions: Conditions, do: str, **request: Any) -> list[dict[str, Any]]:
    for worker in workers:
        worker.send(do, **request)
    return _replies(workers, conditions.timeout)


def _window(workers: Sequence[Worker], conditions: Conditions, seconds: float) -> Window:
    """All of them answer requests for so many seconds, from the same moment on."""
    at = time.perf_counter() + LEAD_SECONDS
    for worker in workers:
        worker.send("serve", at=at, seconds=seconds)
    return Window(_replies(workers, conditions.timeout + seconds))


def _windows(workers: Sequence[Worker], conditions: Conditions) -> list[Window]:
    """Windows until there are enough requests for what was asked, and for a p99; or until patience ends."""
    wanted, patience = max(conditions.samples, P99_SAMPLES), PATIENCE * conditions.seconds
    windows: list[Window] = []
    spent, done = 0.0, 0
    while done < wanted and spent < patience:
        missing = (wanted - done) * spent / done if done else 0.0
        windows.append(_window(workers, conditions, min(max(conditions.seconds, missing), patience)))
        spent, done = spent + windows[-1].wall, done + len(windows[-1].latencies)
    return windows


def _measured(
    workers: Sequence[Worker], case: Case, index: int, conditions: Conditions
) -> tuple[Launch, dict[str, Any]]:
    for worker, instance in zip(workers, conditions.instances, strict=True):
        worker.send("prepare", case=case.to_json(), settings=asdict(instance.settings))
    prepared = _replies(workers, conditions.timeout)
    environments = _ask(workers, conditions, "environment")
    watch = Watch(case, conditions)
    warmed = _ask(workers, conditions, "warm")
    watch.begin(*(worker.pid for worker in workers))
    windows = _windows(workers, conditions)
    wall = sum(window.wall for window in windows)
    delay = sum(reply["delay"] for window in windows for reply in window.told)
    seen, disturbed = watch.end([Sample(wall, 0.0, delay)])
    memory = sum(reply["peak_memory"] for reply in _ask(workers, conditions, "memory"))
    proofs = _ask(workers, conditions, "proof")
    told = _ask(workers, conditions, "metrics")
    # Of the first: they all run the same, and one alone is not disturbed.
    ran = workers[0].ask("fingerprint")["fingerprint"]
    samples = [sample for window in windows for sample in window.samples()]
    late = max(window.late for window in windows)
    behind = f"an instance began {late:.0%} of a window late" if late > LATE_SHARE else ""
    # What users wait for: the last of them to be there.
    last = {name: max(reply[name] for reply in replies) for replies in (prepared, warmed) for name in TIMES
            if name in replies[0]}  # fmt: skip
    items = prepared[0]["items"]
    metrics = figures(samples, {**last, "items": items, "peak_memory": memory})
    metrics["throughput"] = items * len(samples) / wall
    launch = Launch(
        index,
        "ok",
        samples=tuple(thinned(samples)),
        metrics={**metrics, **{name: max(x["metrics"][name] for x in told) for name in told[0]["metrics"]}},
        proof=(*agreed([reply["checks"] for reply in proofs]), apart(proofs, conditions)),
        gate={
            **seen,
            "late": late,
            "steady": min(x["steady"] for x in warmed),
            "first_step": max(x["first_step"] for x in warmed),
        },
        contended="; ".join(filter(None, (disturbed, behind))),
        log=workers[0].log(),
        notes=(*conditions.notes, *notes(samples, conditions), *counted(len(samples)), *_notes(told)),
        fingerprint=ran,
    )
    return launch, {**environments[0], "placement": [environment["placement"] for environment in environments]}


def _notes(told: Sequence[dict[str, Any]]) -> list[str]:
    """What the instances told, each thing once."""
    return list(dict.fromkeys(note for reply in told for note in reply["notes"]))


def thinned(samples: Sequence[Sample]) -> list[Sample]:
    """At most as many as are kept, evenly spaced over all windows and workers."""
    if len(samples) <= KEPT:
        return list(samples)
    return [samples[number * len(samples) // KEPT] for number in range(KEPT)]


def counted(requests: int) -> list[str]:
    """What a reader must know of how many requests there were."""
    found = []
    if requests < P99_SAMPLES:
        found.append(f"no p99: {requests} of the {P99_SAMPLES} requests that it needs")
    if requests > KEPT:
        found.append(f"{KEPT} of {requests} latencies are kept, evenly spaced; the numbers are of all of them")
    return found


def agreed(replies: Sequence[Sequence[dict[str, Any]]]) -> list[Check]:
    """Each check of all instances as one: it holds where it holds in every one of them."""
    found = []
    for parts in zip(*replies, strict=True):
        checks = [Check(**part) for part in parts]
        texts = []
        for values in ([x.found for x in checks], [x.expected for x in checks]):
            told = "; ".join(f"instance {number}: {value}" for number, value in enumerate(values))
            texts.append(values[0] if len(set(values)) == 1 else told)
        found.append(Check(checks[0].name, all(check.ok for check in checks), *texts))
    return found


def apart(proofs: Sequence[dict[str, Any]], conditions: Conditions) -> Check:
    """What no instance can prove alone: that the cores that it holds, now that it was measured, are its own."""
    held = [core for proof in proofs for core in proof["placement"]["cores"]]
    asked = [core for instance in conditions.instances for core in (instance.settings.placement or {})["cores"]]
    return Check(
        "instance_cores",
        sorted(held) == sorted(asked) and len(set(held)) == len(held),
        f"{len(proofs)} instances hold {len(held)} cores, {len(set(held))} of them different",
        f"{len(conditions.instances)} instances, each alone on its {len(asked) // len(conditions.instances)}",
    )
