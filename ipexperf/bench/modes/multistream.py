"""Throughput with IPEX's runtime extension: one jitted network, and a batch split over streams of few cores."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ipexperf.bench import registry
from ipexperf.bench.api import TRACED, Kernel, Look, Mode, Session, Stack, Workbench
from ipexperf.bench.cell import Cell
from ipexperf.bench.device import Device
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine import placement
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.machine.placement import ranges
from ipexperf.bench.model import Tensors
from ipexperf.bench.modes import _script
from ipexperf.bench.modes._inference import FIT, KNOBS, NumberOrFit
from ipexperf.bench.modes.infer_jit import JitSession
from ipexperf.bench.precision import autocast
from ipexperf.dtypes import DTYPES
from ipexperf.errors import WorkerError
from ipexperf.proof import fingerprint, label, profiler
from ipexperf.result import Check

ROUNDS = 5
"""Number of steps that shows every thread that takes part."""
TICKS = 0.05
"""Seconds of several clock ticks, with which the kernel updates the time of a running thread."""
_WORK = re.compile(rf"ipex_prepack::\w+_run|{'|'.join(map(re.escape, label.HEAVY))}", re.ASCII)
_TASKS = Path("/proc/self/task")
T = TypeVar("T")


class StreamsKnob(NumberOrFit):
    """The knob for the number of streams. By default one per core, but not more than images, as the vendor's."""

    def why_not(self, cell: Cell, value: str, facts: Facts) -> str | None:
        return too_many(value, facts.cores) or super().why_not(cell, value, facts)


def too_many(streams: str, cores: int) -> str | None:
    """Return why this many streams cannot each have a core, or None."""
    if streams == FIT or int(streams) <= cores:
        return None
    return f"{streams} streams need as many cores, but only {cores} may be used here"


class MultiStreamSession(JitSession):
    """Calls the streams, and compares their outputs with those of the jitted network that they share."""

    def build(self, network: Any, example: Tensors) -> Any:
        if len(example) > 1:
            text = f"{self.bench.model.name} has {len(example)}"
            raise WorkerError("error", f"multistream is built for networks of one input, and {text}")
        cores = (self.bench.settings.placement or {}).get("cores")
        self.cores = sorted(cores) if cores else placement.allowed()
        streams = self.bench.knob("streams")
        if wrong := too_many(streams, len(self.cores)):
            raise WorkerError("error", wrong)
        self.streams = min(len(self.cores), len(example[0])) if streams == FIT else int(streams)
        # Packed and traced for the shape that a stream gets: its part of the batch.
        self.single = super().build(network, self._parts(example)[0])
        self.network = streamed(self.single, self.cores, self.streams)
        self.settle(example)
        return self.network

    @property
    def script(self) -> Any:
        return self.single

    def _parts(self, batch: Tensors) -> list[Tensors]:
        (images,) = batch
        return [(part,) for part in split_evenly(images, self.streams)]

    def _alone(self, batch: Tensors) -> Any:
        """Return the output of the network without streams."""
        with torch.no_grad(), autocast(self.bench.case.device, self.bench.case.dtype, cache=False):
            return self.single(*batch)

    def kernels(self) -> list[Kernel]:
        """Return kernels of all threads: torch's profiler only sees its caller by default."""
        return super().kernels() or label.kernels(profiler.traced(self.step, everywhere=True))

    def looks(self, device: Device) -> Mapping[str, Look]:
        """Capture the operators of all threads: each stream has one."""
        return {**super().looks(device), **fingerprint.of_step(self.step, device, everywhere=True)}

    def proof(self) -> list[Check]:
        # First: the proof of the jitted network runs steps without streams.
        return [*self._split_checks(), *super().proof()]

    def _split_checks(self) -> list[Check]:
        batch = self.inputs[0]
        parts = self._parts(batch)

        def step() -> Any:
            return self.forward(batch)

        counts = operators_by_thread(step)
        whole = sum(operators_by_thread(lambda: self._alone(parts[0])).values())
        busy = busy_threads(step)
        outputs = step()
        shares = parts_of_streams(self.network) or [len(outputs)]
        return [
            check_streams(counts, self.streams, whole),
            check_cores(counts, busy, self.cores, self.streams),
            check_split(shares, len(batch[0]), self.streams),
            self._joined(outputs, torch.cat([self._alone(part) for part in parts])),
        ]

    def _joined(self, outputs: Any, alone: Any) -> Check:
        """Check that the outputs of all streams equal those of the network for the same parts of the batch."""
        bound = DTYPES[self.bench.case.dtype].bounds.fidelity
        if outputs.shape != alone.shape:
            return Check("joined", False, f"shape {tuple(outputs.shape)}", f"shape {tuple(alone.shape)}")
        error = float((outputs.double() - alone.double()).pow(2).mean().sqrt() / alone.double().pow(2).mean().sqrt())
        return Check("joined", error <= bound, f"{error:.2g} off one network's answers", f"at most {bound:g}")


class MultiStream(Mode):
    name = "multistream"
    graph = TRACED
    openmp = "iomp5"
    knobs = (*KNOBS, StreamsKnob("streams", "streams that share a batch, each with its cores (default: one a core)"))

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        if cell.device != "cpu":
            return f"multistream gives each stream cores of its own: it is for cpu, not for {cell.device}"
        if cell.stack != "ipex":
            return f"multistream is IPEX's runtime extension: {cell.stack} has none"
        if registry.tasks.get(registry.models.get(cell.model).task).inputs > 1:
            return f"multistream is built for networks of one input, and {cell.model} has more"
        return None

    def unfit(self, cell: Cell, batch: int, threads: int | None) -> str | None:
        if threads:
            return f"multistream always uses one thread per core: threads={threads} does not apply"
        streams = cell.knob("streams") or FIT
        if streams != FIT and int(streams) > batch:
            return f"{streams} streams share a batch of {batch}: some of them would get no image"
        return None

    def script(self, cell: Cell, stack: Stack) -> tuple[str, ...]:
        streams = cell.knob("streams") or FIT
        count = '"AUTO"' if streams == FIT else streams
        module, pool = "ipex.cpu.runtime.MultiStreamModule", "ipex.cpu.runtime.CPUPool()"
        split = f"model = {module}(model, num_streams={count}, cpu_pool={pool})"
        return _script.inference(cell, stack, _script.TRACE, split)

    def open(self, bench: Workbench) -> Session:
        return MultiStreamSession(bench)


def streamed(network: Any, cores: Sequence[int], streams: int) -> Any:
    """Return streams as in the vendor's guide. By default they split a batch, and join outputs, along the images."""
    runtime = importlib.import_module("intel_extension_for_pytorch.cpu.runtime")
    if not runtime.is_runtime_ext_enabled():
        text = "IPEX's runtime extension is off: Intel's OpenMP was not preloaded, and a launcher has to"
        raise WorkerError("error", text)
    return runtime.MultiStreamModule(network, num_streams=streams, cpu_pool=runtime.CPUPool(list(cores)))


def parts_of_streams(network: Any) -> list[int]:
    """Return the sizes that the module last gave to its streams. A single stream records nothing."""
    if network.get_stream_number() == 1:
        return []
    return [len(images) for (images,) in network.args_streams_input[: network.used_num_streams]]


def split_evenly(values: Sequence[T], streams: int) -> list[Sequence[T]]:
    """Split cores or images like the vendor: in order, with the remainder on the first streams."""
    each, more = divmod(len(values), streams)
    ends = [each * number + min(number, more) for number in range(streams + 1)]
    return [values[begin:end] for begin, end in itertools.pairwise(ends)]


def operators_by_thread(step: Callable[[], Any]) -> dict[int, int]:
    """Count the arithmetic operators that each thread of this process ran in a step."""
    events = profiler.traced(step, everywhere=True)
    return dict(Counter(event["tid"] for event in events if _WORK.fullmatch(str(event.get("name")))))


def affinity(thread: int) -> frozenset[int]:
    """Return the cores that a thread of this process may use."""
    return frozenset(os.sched_getaffinity(thread))


def _clocks() -> dict[int, int]:
    """Return the nanoseconds that each thread of this process has run."""
    clocks = {}
    for path in _TASKS.iterdir():
        with contextlib.suppress(OSError):  # the thread ended meanwhile
            clocks[int(path.name)] = int((path / "schedstat").read_text().split()[0])
    return clocks


def busy_threads(step: Callable[[], Any]) -> set[int]:
    """Return the threads that ran during steps."""
    before = _clocks()
    until = time.monotonic() + TICKS
    rounds = 0
    while rounds < ROUNDS or time.monotonic() < until:
        step()
        rounds += 1
    return {thread for thread, clock in _clocks().items() if clock > before.get(thread, 0)}


def check_streams(counts: dict[int, int], count: int, whole: int) -> Check:
    """Check that as many threads as streams did arithmetic, and each ran the whole network."""
    text = f"{len(counts)} threads with {' and '.join(map(str, counts.values())) or 'no'} operators"
    ok = len(counts) == count and set(counts.values()) == {whole} and whole > 0
    return Check("streams", ok, text, f"{count} threads with {whole} operators each")


def check_cores(workers: Collection[int], busy_times: set[int], pool: Sequence[int], count: int) -> Check:
    """Check that each stream's thread is bound to its share of the cores, and that all cores were used.

    A stream with several cores has helper threads, which run no operators. They are identified by their cores.
    """
    shares = [set(share) for share in split_evenly(sorted(pool), count)]
    homes = [[number for number, share in enumerate(shares) if affinity(thread) <= share] for thread in workers]
    # The calling thread splits and joins, and is bound to a core too. It does not count unless it is a stream.
    helpers = busy_times - ({threading.get_native_id()} - set(workers))
    bound = [affinity(thread) for thread in helpers if any(affinity(thread) <= share for share in shares)]
    filled = set().union(*bound)
    ok = sorted(homes) == [[number] for number in range(count)] and filled == set(pool)
    text = " and ".join(sorted(ranges(affinity(thread)) for thread in workers)) or "none"
    wanted = " and ".join(ranges(share) for share in shares)
    return Check(
        "stream_cores", ok, f"streams on cores {text}, {ranges(filled) or 'none'} busy", f"within {wanted}, all busy"
    )


def check_split(parts: Sequence[int], batch: int, count: int) -> Check:
    """Check that the batch was split into as many parts as streams, as equal as possible."""
    wanted = [len(share) for share in split_evenly(range(batch), count)]
    return Check("split", list(parts) == wanted, _sum(parts), _sum(wanted))


def _sum(parts: Sequence[int]) -> str:
    return f"{' + '.join(map(str, parts)) or 'no'} images"


registry.modes.add("multistream", MultiStream())
