"""The live processes of an arm: a scheduler starts them, warms them up, steps them in turns, collects their record."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ipexperf.compare.arm import Arm
from ipexperf.compare.order import TurnShape
from ipexperf.conduct import instances
from ipexperf.conduct.instances import Window
from ipexperf.conduct.launch import (
    P99_SAMPLES,
    not_fresh,
    of_samples,
    record,
    to_samples,
    with_accuracy,
    with_proof,
    with_sample_note,
    with_wait_note,
)
from ipexperf.conduct.protocol import joined
from ipexperf.conduct.worker import Worker
from ipexperf.errors import WorkerError
from ipexperf.judge import stalls
from ipexperf.result import METRICS, THROUGHPUT, Launch, Sample

PROBE_STEPS = 24
"""Single steps to take when probing how long an arm's first steps are slower than the later ones."""
PROBE_SECONDS = 0.1
"""Upper limit for the time of such a probe."""
LONG = 0.03
"""Steps this long need no probe: one untimed step fills every cache."""
NEVER_COLD = 0.25
"""Steps this long need no untimed step: filling the caches takes less than 1 % of them."""
COLD = 1.02
"""A step is cold if it takes this many times as long as later ones."""
LEAD_SECONDS = 0.25
"""A window begins this long after the request for it, so that every worker has received it."""
LATE_SHARE = 0.2
"""A launch is contended if a worker begins its window later than this share of it."""

QUICKEST = {name: metric.repeated for name, metric in METRICS.items() if metric.repeated}
"""The times of a build, with the metric that the quickest of several is."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of an arm: its samples, seconds per step, and total seconds."""

    samples: tuple[Sample, ...]
    step: float
    wall: float
    reply: Any = None
    """The whole reply of its workers, if its steps are requests."""

    @classmethod
    def of(cls, samples: Sequence[Sample], block: int) -> Turn:
        step, wall = statistics.fmean(sample.wall for sample in samples), block * sum(sample.wall for sample in samples)
        return cls(tuple(samples), step, wall)


@dataclass(frozen=True, slots=True)
class CountedTurns:
    """The turns of an arm that count, what the machine did meanwhile, and notes on dropped turns."""

    turns: tuple[Turn, ...]
    shares: dict[str, float]
    contended: str
    notes: tuple[str, ...] = ()

    @property
    def times(self) -> tuple[float, ...]:
        return tuple(turn.step for turn in self.turns)


@contextlib.contextmanager
def guarded(player: Player) -> Iterator[None]:
    """Record a WorkerError as the player's failure, and kill its processes."""
    try:
        yield
    except WorkerError as error:
        player.failure = player.arm.blamed(error)
        for worker in player.workers:
            worker.kill()


class Player(ABC):
    """The live processes of an arm. A failure ends them and is recorded; the other arms go on."""

    def __init__(self, arm: Arm, stack: contextlib.ExitStack) -> None:
        self.arm = arm
        self.failure: WorkerError | None = None
        self.environment: dict[str, Any] = {}
        self.reply: dict[str, Any] = {}
        """What its worker replied to `begin`, `prepare` and `warm`, if it is one that steps."""
        self.workers: list[Worker] = []
        """The processes started so far."""
        self.shape = TurnShape(1, 1)
        """Of its turns, if these are steps."""
        self._stack = stack

    @property
    def step(self) -> float:
        """Seconds of a warm step."""
        return float(self.reply.get("step", 0.0))

    @property
    def block(self) -> int:
        """Steps per sample that the worker would choose by itself."""
        return int(self.reply.get("block", 1))

    @property
    def cold(self) -> bool:
        """Whether only the first step of the process is measured."""
        return bool(self.reply.get("cold"))

    @abstractmethod
    def start(self) -> None:
        """Start the processes and ask them to import what they need, without waiting."""

    @abstractmethod
    def started(self) -> None:
        """Wait until they have imported that."""

    def rehearse(self) -> None:  # noqa: B027 - most have nothing to build
        """Time one more build in a worker of its own, if the arm asks for it."""

    @abstractmethod
    def prepare(self) -> None:
        """Have them build what they step, and wait for it."""

    @abstractmethod
    def warm(self) -> None:
        """Step until the step time is steady."""

    def probe(self) -> None:  # noqa: B027 - windows of requests have no step to look at
        """Time single steps after another arm's turn, to see how many of them are slower."""

    def warm_steps(self) -> int:
        """How many untimed steps a turn needs, judged by the probes."""
        return 0

    @abstractmethod
    def turn(self) -> Turn:
        """Take one turn."""

    @abstractmethod
    def enough(self, turns: Sequence[Turn]) -> bool:
        """Whether these turns are all that was asked for."""

    @abstractmethod
    def launch(self, counted: CountedTurns) -> Launch:
        """The launch record, with its proof."""

    def accuracy(self, launch: Launch) -> Launch:
        """The launch record with the accuracy of its results, if the arm asks for it."""
        if not self.arm.accuracy:
            return launch
        return with_accuracy(self.workers[0], launch, final=self.arm.final, labelled=self.arm.case.labelled)

    def dismiss(self) -> None:
        """End the processes: what they took is free for the accuracy passes of the others."""
        for worker in self.workers:
            worker.close()
            worker.kill()


class WorkerPlayer(Player):
    """One worker that is stepped in turns."""

    def __init__(self, arm: Arm, stack: contextlib.ExitStack) -> None:
        super().__init__(arm, stack)
        self._rehearsals: list[dict[str, float]] = []
        """The metrics of the workers that only built."""
        self._probes: list[list[float]] = []
        self._extra = stalls.extra_steps(arm.index)

    @property
    def worker(self) -> Worker:
        return self.workers[0]

    def start(self) -> None:
        self.workers = [self._stack.enter_context(self.arm.conditions.worker())]
        settings = asdict(self.arm.conditions.settings)
        self.worker.send("begin", case=self.arm.case.to_json(), settings=settings)

    def started(self) -> None:
        self.reply = self.worker.receive()

    def rehearse(self) -> None:
        if (conditions := self.arm.builds) is not None:
            with conditions.worker() as worker:
                reply = worker.prepare(self.arm.case.to_json(), asdict(conditions.settings))
            self._rehearsals.append(reply["metrics"])

    def prepare(self) -> None:
        quickest = {
            metric: min(times)
            for name, metric in QUICKEST.items()
            if (times := [metrics[name] for metrics in self._rehearsals if name in metrics])
        }
        self.reply = joined(self.reply, self.worker.ask("prepare"), {"metrics": quickest})
        self.environment = self.worker.ask("environment")

    def warm(self) -> None:
        self.reply = joined(self.reply, {"block": 1} if self.cold else self.worker.ask("warm"))

    def probe(self) -> None:
        if self.cold or self.step >= LONG:
            return
        count = min(PROBE_STEPS, max(4, math.ceil(PROBE_SECONDS / max(self.step, 1e-6))))
        self._probes.append([sample.wall for sample in to_samples(self._sample(count, 1)["samples"])])

    def warm_steps(self) -> int:
        if not self._probes:
            return int(LONG <= self.step < NEVER_COLD)
        typical = [statistics.median(steps) for steps in zip(*self._probes, strict=True)]
        steady = statistics.median(typical[len(typical) // 2 :])
        slow = [number for number, step in enumerate(typical[: len(typical) // 2 + 1]) if step > COLD * steady]
        return slow[-1] + 1 if slow else 0

    def turn(self) -> Turn:
        shape = self.shape
        warm = shape.warm + next(self._extra) if shape.warm else 0
        reply = self._sample(shape.samples, shape.block, warm=warm)
        return Turn.of(to_samples(reply["samples"]), shape.block)

    def _sample(self, count: int, block: int, **more: int) -> dict[str, Any]:
        return self.worker.ask("sample", count=count, block=block, **more)

    def enough(self, turns: Sequence[Turn]) -> bool:
        # Both a minimum count and a minimum time: neither a few long steps nor many short ones at once are enough.
        conditions = self.arm.conditions
        samples, seconds = sum(len(turn.samples) for turn in turns), sum(turn.wall for turn in turns)
        return self.cold or (samples >= conditions.samples and seconds >= conditions.seconds)

    def launch(self, counted: CountedTurns) -> Launch:
        samples = [sample for turn in counted.turns for sample in turn.samples]
        reply = joined(self.reply, self.worker.ask("usage"), {"block": self.shape.block})
        if self.environment:
            self.environment = {**self.environment, **self.worker.ask("source")}
        shares = {**counted.shares, "turn_warm": float(self.shape.warm)}
        launch = record(self.arm.index, samples, reply, shares, self.worker)
        launch = replace(launch, contended=counted.contended, notes=(*self.arm.conditions.notes, *counted.notes))
        if not self.cold:
            launch = with_sample_note(launch, samples, self.arm.conditions)
        launch = with_wait_note(launch, samples, self.arm.conditions)
        if self.arm.prove:
            launch = with_proof(self.worker, launch, labelled=self.arm.case.labelled)
        if self.arm.trace is not None:
            self.worker.ask("trace", folder=str(self.arm.trace))
        return not_fresh(launch, forked=1.0) if self.arm.conditions.settings.forked else launch


class InstancesPlayer(Player):
    """Several workers that answer requests at the same time, each on its own cores. A turn is a window of seconds.

    If any fails, the launch fails. The first requests of a window count, because users wait for those too.
    """

    def __init__(self, arm: Arm, stack: contextlib.ExitStack) -> None:
        super().__init__(arm, stack)
        self._answers: list[dict[str, Any]] = []
        """What each answered so far, as one reply."""

    def start(self) -> None:
        for instance in self.arm.conditions.instances:
            worker = self._stack.enter_context(instance.worker())
            self.workers.append(worker)
            worker.send("begin", case=self.arm.case.to_json(), settings=asdict(instance.settings))

    def started(self) -> None:
        self._answers = self._replies(self.arm.conditions.timeout)

    def prepare(self) -> None:
        self._join("prepare")
        environments = self._ask("environment")
        placements = [environment["placement"] for environment in environments]
        self.environment = {**environments[0], "placement": placements}

    def warm(self) -> None:
        self._join("warm")

    def turn(self) -> Turn:
        seconds = self.arm.conditions.seconds
        at = time.perf_counter() + LEAD_SECONDS
        for worker in self.workers:
            worker.send("serve", at=at, seconds=seconds)
        window = Window(self._replies(self.arm.conditions.timeout + seconds))
        return Turn(tuple(window.samples()), window.wall / len(window.latencies), window.wall, reply=window)

    def enough(self, turns: Sequence[Turn]) -> bool:
        """Whether there are as many requests as asked for, and enough for a p99."""
        return sum(len(turn.samples) for turn in turns) >= max(self.arm.conditions.samples, P99_SAMPLES)

    def launch(self, counted: CountedTurns) -> Launch:
        """The launch record of these windows, with the proof of every instance."""
        conditions = self.arm.conditions
        windows: list[Window] = [turn.reply for turn in counted.turns]
        self._join("usage")
        self.environment = {**self.environment, **self.workers[0].ask("source")}
        self._join("proof")
        # Only of the first, because they all run the same, and alone it is not disturbed.
        fingerprint = self.workers[0].ask("fingerprint")["fingerprint"]
        samples = [sample for window in windows for sample in window.samples()]
        late = max(window.late for window in windows)
        behind = f"an instance began {100 * late:.0f} % of a window late" if late > LATE_SHARE else ""
        items = self._answers[0]["items"]
        metrics = {
            **of_samples(samples, items),
            THROUGHPUT: items * len(samples) / sum(window.wall for window in windows),
            **instances.merged_metrics(self._answers),
        }
        gate = {
            **counted.shares,
            "late": late,
            "steady": min(reply["steady"] for reply in self._answers),
            "first_step": max(reply["first_step"] for reply in self._answers),
        }
        noted = dict.fromkeys(note for reply in self._answers for note in reply["notes"])
        launch = Launch(
            self.arm.index,
            "ok",
            samples=tuple(instances.thinned(samples)),
            metrics=metrics,
            proof=(
                *instances.merged_checks(self._answers),
                instances.check_cores(self._answers, conditions),
            ),
            gate=gate,
            contended="; ".join(filter(None, (counted.contended, behind))),
            log=self.workers[0].log(),
            notes=(*conditions.notes, *instances.requests_noted(len(samples)), *counted.notes, *noted),
            emulated=any(reply["emulated"] for reply in self._answers),
            fingerprint=fingerprint,
        )
        return with_wait_note(with_sample_note(launch, samples, conditions), samples, conditions)

    def _join(self, do: str) -> None:
        """Ask each of them, and keep what it answers beside its earlier replies."""
        self._answers = [joined(*both) for both in zip(self._answers, self._ask(do), strict=True)]

    def _ask(self, do: str) -> list[dict[str, Any]]:
        for worker in self.workers:
            worker.send(do)
        return self._replies(self.arm.conditions.timeout)

    def _replies(self, timeout: float) -> list[dict[str, Any]]:
        """Receive one reply from each, within one time limit for all."""
        replies, until = [], time.monotonic() + timeout
        for number, worker in enumerate(self.workers):
            try:
                replies.append(worker.receive(max(1.0, until - time.monotonic())))
            except WorkerError as error:  # noqa: PERF203 - adds which instance failed, and ends the launch
                raise WorkerError(error.outcome, f"instance {number}: {error.reason}", error.log) from error
        return replies


def new_player(arm: Arm, stack: contextlib.ExitStack) -> Player:
    """The player for an arm: one worker that steps, or several that answer requests at the same time."""
    return (InstancesPlayer if arm.conditions.instances else WorkerPlayer)(arm, stack)
