"""Where a step takes its batch from: the device's memory, the host's, or a loader that makes it meanwhile."""

from __future__ import annotations

import itertools
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.facts import Facts
from ipexperf.bench.kinds import Cell, Device
from ipexperf.bench.knobs import Knob, Number
from ipexperf.bench.lazy import torch
from ipexperf.bench.subjects import Model, Tensors
from ipexperf.bench.workbench import Workbench
from ipexperf.errors import UsageError
from ipexperf.result import Check

RING = 64
BYTES = 2**28
"""So many different batches take turns, or as many as are no larger than this; they are the same for every input."""
WAITS = 10
"""Steps in which the wait for the batch is timed, apart from the samples."""


@dataclass(frozen=True)
class Input(Knob):
    """What a step has to do for its batch: `--perf-input` is this knob."""

    name: str = "input"
    help: str = "batches lie on the device, are copied there in each step, or come from a loader"
    values: tuple[str, ...] = ("device", "host", "loader")

    def ablated(self, model: Model, beside: Mapping[str, str]) -> str:
        del model, beside
        raise UsageError("the knob input has no 'off': ablation is for knobs that are on or off")

    def why_not(self, cell: Cell, value: str, facts: Facts) -> str | None:
        if value == "host" and not registry.devices.get(cell.device).accelerator:
            return f"input=host equals input=device on {cell.device}: the host's memory is the device's"
        return super().why_not(cell, value, facts)


@dataclass(frozen=True)
class LoaderWorkers(Number):
    """How many processes make batches."""

    name: str = "loader_workers"
    help: str = "processes that make batches, with input=loader"
    values: tuple[str, ...] = ("2",)

    def why_not(self, cell: Cell, value: str, facts: Facts) -> str | None:
        if cell.knob("input") != "loader":
            return "the knob loader_workers is for input=loader: nothing else has a loader"
        return super().why_not(cell, value, facts)


KNOBS: tuple[Knob, ...] = (Input(), LoaderWorkers())


class Feed(ABC):
    """Endless batches, each a tuple of tensors on the device, laid out as the case has them."""

    waits = True
    """Whether a step has to wait for its batch at all."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.copied = 0
        """Batches that were taken from the host's memory to the device since the feed was opened."""

    def __iter__(self) -> Iterator[Any]:
        return self

    @abstractmethod
    def __next__(self) -> Tensors: ...

    def put(self, batch: Tensors) -> Tensors:
        self.copied += 1
        return tuple(self.device.put(value) for value in batch)

    @abstractmethod
    def told(self) -> tuple[bool, str, str]:
        """Whether it is what its name says, what was found, and what was expected."""

    def proof(self, step: Callable[[], Any]) -> Check:
        """Looks at one step: with input=device it copies no batch, and with any other it does."""
        before = self.copied
        step()
        ok, found, expected = self.told()
        copies = self.copied - before
        wanted = "at least 1" if self.waits else "0"
        return Check(
            "input",
            ok and (copies > 0) == self.waits,
            f"{found}, {copies} copied in a step",
            f"{expected}, {wanted} copied in a step",
        )

    def close(self) -> None:  # noqa: B027 - most feeds hold nothing but memory
        """Ends what the feed started."""


class Resident(Feed):
    """Batches that lie on the device before anything is timed."""

    waits = False

    def __init__(self, device: Device, ring: list[Tensors]) -> None:
        super().__init__(device)
        self.ring = ring
        self._turns = itertools.cycle(ring)

    def __next__(self) -> Tensors:
        return next(self._turns)

    def told(self) -> tuple[bool, str, str]:
        kinds = sorted({value.device.type for batch in self.ring for value in batch})
        total = f"{len(self.ring)} batches on "
        return kinds == [self.device.name], total + " and ".join(kinds), total + self.device.name


class Hosted(Feed):
    """Batches in the host's memory, pinned where the device copies from there: each step copies its own."""

    def __init__(self, device: Device, ring: list[Tensors]) -> None:
        super().__init__(device)
        self.ring = [tuple(device.pin(value) for value in batch) for batch in ring]
        self._turns = itertools.cycle(self.ring)

    def __next__(self) -> Tensors:
        return self.put(next(self._turns))

    def told(self) -> tuple[bool, str, str]:
        values = [value for batch in self.ring for value in batch]
        pinned = sum(value.is_pinned() for value in values)
        host = all(value.device.type == "cpu" for value in values)
        told = f"{pinned} of {len(values)} tensors pinned in host memory"
        return host and pinned == len(values), told, f"all {len(values)}"


class Loaded(Feed):
    """Batches from torch's DataLoader: its processes take examples one by one and stack them."""

    def __init__(self, bench: Workbench, examples: Tensors, ring: list[list[int]], workers: int) -> None:
        device = bench.device
        super().__init__(device)
        self.workers = workers
        self._lay = bench.laid_out
        self._batches = iter(
            torch.utils.data.DataLoader(
                torch.utils.data.TensorDataset(*examples),
                batch_sampler=itertools.cycle(ring),
                num_workers=workers,
                persistent_workers=True,
                # They take examples that are in memory: nothing has to be sent to them, and none calls the device.
                multiprocessing_context="fork",
                # Its own: the training's random numbers must not depend on the loader.
                generator=torch.Generator(),
                **_pinned(device),
            )
        )

    def __next__(self) -> Tensors:
        return tuple(map(self._lay, self.put(tuple(next(self._batches)))))

    def _processes(self) -> list[Any]:
        # Torch has no public way to its processes.
        return list(self._batches._workers)  # noqa: SLF001

    def told(self) -> tuple[bool, str, str]:
        alive = sum(process.is_alive() for process in self._processes())
        return alive == self.workers, f"{alive} loader processes", str(self.workers)

    def close(self) -> None:
        self._batches._shutdown_workers()  # noqa: SLF001 - or they live until torch notices, seconds later


def _pinned(device: Device) -> dict[str, Any]:
    """How a loader is told to pin memory: since torch 2.8 for the accelerator that there is, before by its name."""
    if not device.accelerator:
        return {}
    old = tuple(int(word) for word in torch.__version__.split(".")[:2]) < (2, 8)
    return {"pin_memory": True, **({"pin_memory_device": device.name} if old else {})}


def kind(bench: Workbench) -> str:
    """Where the case takes its batches from; a mode without the knob has them on the device."""
    return bench.knob("input") if any(knob.name == "input" for knob in bench.mode.knobs) else "device"


def turns(examples: Tensors, order: Iterator[Any]) -> list[Any]:
    """The batches that take turns, by the numbers of their examples."""
    first = next(order)
    size = sum(value[:1].nbytes for value in examples) * len(first)
    return [first, *itertools.islice(order, max(0, min(RING, BYTES // size) - 1))]


def feed(bench: Workbench, examples: Tensors, order: Iterator[Any], there: list[Tensors] | None = None) -> Feed:
    """The feed of a case over these examples; `order` says which of them each batch has, by their numbers.

    Who has the same batches on the device already hands them in: they need not be there twice.
    """
    if there is not None and kind(bench) == "device":
        return Resident(bench.device, there)
    ring = turns(examples, order)
    if kind(bench) == "loader":
        numbers = [[int(number) for number in part] for part in ring]
        return Loaded(bench, examples, numbers, int(bench.knob("loader_workers")))
    batches = [tuple(bench.laid_out(value[part]) for value in examples) for part in ring]
    if kind(bench) == "host":
        return Hosted(bench.device, batches)
    return Resident(bench.device, [tuple(bench.device.put(value) for value in batch) for batch in batches])


class _Timed:
    """A feed that is timed: from the moment that a batch is asked for until it lies on the device."""

    def __init__(self, source: Feed) -> None:
        self._source = source
        self.seconds: list[float] = []

    def __next__(self) -> Tensors:
        synchronise = self._source.device.synchronise
        synchronise()
        begin = time.perf_counter()
        batch = next(self._source)
        synchronise()
        self.seconds.append(time.perf_counter() - begin)
        return batch


def waited(session: Any) -> dict[str, float]:
    """The metric `input_time`: what a step waits for its batch, over some steps of their own."""
    source: Feed = session.feed
    if not source.waits:
        return {}
    timed = _Timed(source)
    session.feed = timed
    try:
        for _ in range(WAITS):
            session.step()
    finally:
        session.feed = source
    return {"input_time": statistics.median(timed.seconds)}
