"""The source of batches: device memory, host memory, or a data loader."""

from __future__ import annotations

import itertools
import statistics
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Workbench
from ipexperf.bench.cell import Cell
from ipexperf.bench.clocks import perf_counter
from ipexperf.bench.device import Device
from ipexperf.bench.knob import Knob, Number
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.model import Tensors
from ipexperf.result import Check

RING = 64
BYTES = 2**28
"""Number of batches that take turns, limited by their total size. They are the same for every source."""
SOURCES = ("device", "host", "loader")
WAITS = 10
"""Number of steps, apart from the samples, in which the wait for the batch is timed."""


@dataclass(frozen=True)
class InputKnob(Knob):
    def why_not(self, cell: Cell, value: str, facts: Facts) -> str | None:
        if value == "host" and not registry.devices.get(cell.device).accelerator:
            return f"input=host equals input=device on {cell.device}: the host's memory is the device's"
        return super().why_not(cell, value, facts)


KNOBS: tuple[Knob, ...] = (
    InputKnob("input", "batches lie on the device, are copied there in each step, or come from a loader", SOURCES),
    Number(
        "loader_workers",
        "processes that make batches, with input=loader",
        ("2",),
        beside=("input", ("loader",), "nothing else has a loader"),
    ),
)


class Feed(Iterator[Tensors]):
    """Endless batches, each a tuple of tensors on the device in the case's memory layout."""

    waits = True
    """Whether steps have to wait for batches."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.copied = 0
        """Number of batches copied from host memory to the device so far."""

    def put(self, batch: Tensors) -> Tensors:
        self.copied += 1
        return tuple(self.device.put(value) for value in batch)

    @abstractmethod
    def verify(self) -> tuple[bool, str, str]:
        """Return whether the feed works as named, what was found, and what was expected."""

    def proof(self, step: Callable[[], Any]) -> Check:
        """Check one step: with input=device it copies no batch, with any other source it does."""
        before = self.copied
        step()
        ok, actual, expected = self.verify()
        copies = self.copied - before
        wanted = "at least 1" if self.waits else "0"
        return Check(
            "input",
            ok and (copies > 0) == self.waits,
            f"{actual}, {copies} copied in a step",
            f"{expected}, {wanted} copied in a step",
        )

    def close(self) -> None:
        """End what the feed started."""


class Resident(Feed):
    """Batches that are moved to the device in advance."""

    waits = False

    def __init__(self, device: Device, ring: list[Tensors]) -> None:
        super().__init__(device)
        self.ring = ring
        self._cycle = itertools.cycle(ring)
        self._versions = self._count_writes()

    def _count_writes(self) -> list[list[int]]:
        return [[value._version for value in batch] for batch in self.ring]  # noqa: SLF001 - as torch's notes show it

    def __next__(self) -> Tensors:
        return next(self._cycle)

    def verify(self) -> tuple[bool, str, str]:
        kinds = sorted({value.device.type for batch in self.ring for value in batch})
        total = f"{len(self.ring)} batches on "
        pairs = zip(self._versions, self._count_writes(), strict=True)
        changed = sum(before != after for before, after in pairs)
        words = f", {changed} of them changed in place by steps" if changed else ""
        text = total + " and ".join(kinds) + words
        return kinds == [self.device.name] and not changed, text, total + self.device.name


class Hosted(Feed):
    """Batches in host memory, pinned if the device supports it. Each step copies its batch."""

    def __init__(self, device: Device, ring: list[Tensors]) -> None:
        super().__init__(device)
        self.ring = [tuple(device.pin(value) for value in batch) for batch in ring]
        self._cycle = itertools.cycle(self.ring)

    def __next__(self) -> Tensors:
        return self.put(next(self._cycle))

    def verify(self) -> tuple[bool, str, str]:
        values = [value for batch in self.ring for value in batch]
        pinned = sum(value.is_pinned() for value in values)
        host = all(value.device.type == "cpu" for value in values)
        text = f"{pinned} of {len(values)} tensors pinned in host memory"
        return host and pinned == len(values), text, f"all {len(values)}"


class Loaded(Feed):
    """Batches from torch's DataLoader, whose processes collect and stack single examples."""

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
                # Examples are in memory, so nothing is sent to the processes, and none uses the device.
                multiprocessing_context="fork",
                # Its own generator: the random numbers of training must not depend on the loader.
                generator=torch.Generator(),
                **_pinned(device),
            )
        )

    def __next__(self) -> Tensors:
        return tuple(map(self._lay, self.put(tuple(next(self._batches)))))

    def _processes(self) -> list[Any]:
        # Torch has no public API for its processes.
        return list(self._batches._workers)  # noqa: SLF001

    def verify(self) -> tuple[bool, str, str]:
        alive = sum(process.is_alive() for process in self._processes())
        return alive == self.workers, f"{alive} loader processes", str(self.workers)

    def close(self) -> None:
        self._batches._shutdown_workers()  # noqa: SLF001 - otherwise they live for seconds until torch notices


def _pinned(device: Device) -> dict[str, Any]:
    """Return the arguments to pin memory: since torch 2.8 for the current accelerator, before that by its name."""
    if not device.accelerator:
        return {}
    old = tuple(int(word) for word in torch.__version__.split(".")[:2]) < (2, 8)
    return {"pin_memory": True, **({"pin_memory_device": device.name} if old else {})}


def kind(bench: Workbench) -> str:
    """Return the source of the case's batches. Modes without the knob have them on the device."""
    return bench.knob("input") if any(knob.name == "input" for knob in bench.mode.knobs) else "device"


def ring_of(examples: Tensors, order: Iterator[Any]) -> list[Any]:
    """Return the batches that take turns, by the indices of their examples."""
    first = next(order)
    size = sum(value[:1].nbytes for value in examples) * len(first)
    return [first, *itertools.islice(order, max(0, min(RING, BYTES // size) - 1))]


def feed(bench: Workbench, examples: Tensors, order: Iterator[Any], resident: list[Tensors] | None = None) -> Feed:
    """Return the feed of a case over these examples. `order` yields the example indices of each batch.

    `resident` are the same batches if they are on the device already.
    """
    source = kind(bench)
    if resident is not None and source == "device":
        return Resident(bench.device, resident)
    ring = ring_of(examples, order)
    if source == "loader":
        numbers = [[int(number) for number in part] for part in ring]
        return Loaded(bench, examples, numbers, int(bench.knob("loader_workers")))
    batches = [tuple(bench.laid_out(value[part]) for value in examples) for part in ring]
    if source == "host":
        return Hosted(bench.device, batches)
    return Resident(bench.device, [tuple(bench.device.put(value) for value in batch) for batch in batches])


def waited(session: Any) -> dict[str, float]:
    """Measure the metric `input_time`: how long a step waits for its batch, in separate steps.

    The wait goes from the request until the batch is on the device.
    """
    source: Feed = session.feed
    if not source.waits:
        return {}
    seconds: list[float] = []

    def timed() -> Iterator[Tensors]:
        while True:
            source.device.synchronise()
            begin = perf_counter()
            batch = next(source)
            source.device.synchronise()
            seconds.append(perf_counter() - begin)
            yield batch

    session.feed = timed()
    for _ in range(WAITS):
        session.step()
    session.feed = source
    return {"input_time": statistics.median(seconds)}
