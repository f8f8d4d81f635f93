"""A fake card below torch's own `torch.xpu`, for machines without an Intel GPU: asynchronous, on a clock of its own.

It takes the place of what `torch/xpu/*.py` calls in C++ (`torch._C._xpu_*`), so that the Python code is torch's. Its
tensors are CPU tensors that say `xpu`. What is asked of it lies in a queue and costs pretended device time; only a
synchronisation, or reading a value back, lets the host's clock catch up: whoever forgets to wait measures the queue.
The properties are those that torch printed of real cards, the messages those that torch's XPU backend prints.
"""

from __future__ import annotations

import importlib
import re
import sys
import warnings
import weakref
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from fake_card import Back, OnCard, There, inner_of
from torch.utils._pytree import tree_leaves, tree_map

if TYPE_CHECKING:
    import pytest

HOST = 1e-5
"""Seconds that the host takes to put one operator into the queue."""
HEAVY = 1e-2
LIGHT = 1e-5
"""Seconds that the device takes for an operator: one that does arithmetic, and any other."""
ARITHMETIC = ("convolution", "addmm", "mm", "bmm")
_BLOCK = 2**21
"""What the caching allocator rounds up to."""
LOST = "level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)"
NO_FP64 = "Required aspect fp64 is not supported on the device"
FALLBACK = (
    "Aten Op fallback from XPU to CPU happends. This may have performance implications. "
    "If need debug the fallback ops please set environment variable `PYTORCH_DEBUG_XPU_FALLBACK=1` "
)


@dataclass(frozen=True)
class Properties:
    """What torch 2.7 printed of an Arc A770 under driver 1.6.32567+18."""

    name: str = "Intel(R) Arc(TM) A770 Graphics"
    platform_name: str = "Intel(R) oneAPI Unified Runtime over Level-Zero"
    type: str = "gpu"
    driver_version: str = "1.6.32567+18"
    total_memory: int = 15473 * 2**20
    max_compute_units: int = 512
    gpu_eu_count: int = 512
    gpu_subslice_count: int = 32
    max_work_group_size: int = 1024
    max_num_sub_groups: int = 128
    sub_group_sizes: tuple[int, ...] = (8, 16, 32)
    has_fp16: bool = True
    has_fp64: bool = False
    has_atomic64: bool = True


class Clock:
    """The host's clock: work of the host and waiting for the device let it go on."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


class Event:
    """What torch derives its events of: a mark in the queue."""

    card: FakeXpu

    def __new__(cls, *, enable_timing: bool = False) -> Any:
        made = super().__new__(cls)
        made.timing, made.at = enable_timing, 0.0
        return made

    timing: bool
    at: float

    def record(self, stream: Any) -> None:
        self.card.calls["Event.record"] += 1
        self.at = max(self.card.free_at, self.card.clock.now)

    def query(self) -> bool:
        return self.card.clock.now >= self.at

    def synchronize(self) -> None:
        self.card.clock.now = max(self.card.clock.now, self.at)

    def elapsed_time(self, end_event: Event) -> float:
        if not (self.timing and end_event.timing):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        if self.card.without_timing:
            raise RuntimeError("elapsed_time is not supported by this runtime")
        if not end_event.query():
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return (end_event.at - self.at) * 1e3 * self.card.unit


class Stream:
    """What torch derives its streams of."""

    def __new__(cls, *_: Any, **__: Any) -> Any:
        return super().__new__(cls)


class FakeXpu:
    """One card, or several that are alike, which can be told to misbehave."""

    def __init__(self, count: int = 1) -> None:
        self.clock = Clock()
        self.free_at = 0.0
        self.calls: Counter[str] = Counter()
        self.count = count
        self.properties = Properties()
        self.others: list[Any] = []
        """The properties of further cards, where they are not alike."""
        self.free: int | None = None
        """Bytes that no process has, if the driver tells."""
        self.waits = True
        """Whether synchronize waits: a device that lies does not."""
        self.without_timing = False
        self.unit = 1.0
        """Of the clock behind timing events."""
        self.fragments = 0
        """Bytes of its reserve that each operator with arithmetic makes useless."""
        self.lost = False
        self.falls_back: set[str] = set()
        """Operators for which it has no kernel."""
        self._warned = False
        self.held = self.peak = self.reserved = 0

    def boundary(self) -> dict[str, Any]:
        """What torch's Python calls of its C++."""
        return {
            "_has_xpu": True,
            "_XpuDeviceProperties": Properties,
            "_XpuEventBase": type("_XpuEventBase", (Event,), {"card": self}),
            "_XpuStreamBase": Stream,
            "_xpu_init": self._init,
            "_xpu_isInBadFork": lambda: False,
            "_xpu_getDeviceCount": lambda: self.count,
            "_xpu_getDevice": lambda: 0,
            "_xpu_setDevice": self._set_device,
            "_xpu_exchangeDevice": lambda _: 0,
            "_xpu_maybeExchangeDevice": lambda _: 0,
            "_xpu_getCurrentStream": lambda device: (0, device, 0),
            "_xpu_synchronize": self._synchronize,
            "_xpu_emptyCache": lambda: None,
            "_xpu_memoryStats": self._memory_stats,
            "_xpu_resetPeakMemoryStats": self._reset_peak,
            "_xpu_getMemoryInfo": self._memory_info,
        }

    def _init(self) -> None:
        if not self.count:
            raise RuntimeError("No XPU devices are available.")
        torch.xpu._get_device_properties = lambda index: [self.properties, *self.others][index if self.others else 0]  # type: ignore[attr-defined]
        torch.xpu.default_generators = tuple(torch.Generator() for _ in range(self.count))

    def _set_device(self, device: int) -> None:
        self.calls[f"set_device({device})"] += 1

    def _synchronize(self, device: int) -> None:
        self.calls["synchronize"] += 1
        self._alive()
        if self.waits:
            self._wait()

    def _memory_stats(self, device: int) -> dict[str, Any]:
        held, reserved = {"current": self.held, "peak": self.peak}, {"current": self.reserved, "peak": self.reserved}
        return {"allocated_bytes": {"all": held}, "reserved_bytes": {"all": reserved}}

    def _reset_peak(self, device: int) -> None:
        self.calls["reset_peak_memory_stats"] += 1
        self.peak = self.reserved = self.held

    def _memory_info(self, device: int) -> tuple[int, int]:
        if self.free is None:
            raise RuntimeError("The device does not have the ext_intel_free_memory aspect")
        return self.free, self.properties.total_memory

    # What it does with them.
    def _wait(self) -> None:
        self.clock.now = max(self.clock.now, self.free_at)

    def _alive(self) -> None:
        if self.lost:
            raise RuntimeError(LOST)

    def busy(self, seconds: float) -> None:
        """Puts so much work into the queue."""
        self.clock.now += HOST
        self.free_at = max(self.free_at, self.clock.now) + seconds

    def wrap(self, inner: torch.Tensor) -> OnCard:
        """The tensor, now on the card."""
        if inner.dtype == torch.float64 and not self.properties.has_fp64:
            raise RuntimeError(NO_FP64)
        size = inner.numel() * inner.element_size()
        if self.held + size > self.properties.total_memory:
            raise torch.OutOfMemoryError(
                f"XPU out of memory. Tried to allocate {size / 2**20:.2f} MiB. GPU 0 has a total capacity of "
                f"{self.properties.total_memory / 2**30:.2f} GiB. Please use `empty_cache` to release all unoccupied "
                "cached memory."
            )
        made = OnCard(inner, self)
        self.held += size
        self.peak = max(self.peak, self.held)
        self.reserved = max(self.reserved, -(-self.peak // _BLOCK) * _BLOCK)
        weakref.finalize(made, self._freed, size)
        return made

    def _freed(self, size: int) -> None:
        self.held -= size

    def run(self, func: Any, args: Any, kwargs: Any) -> Any:
        """One operator: on the CPU now, in pretence on the device later."""
        self._alive()
        name = func.name().partition("::")[2].partition(".")[0]
        leaves = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        moves = name in ("_to_copy", "copy_")
        for leaf in leaves:
            if not isinstance(leaf, OnCard) and leaf.dim() and not moves:
                raise RuntimeError(
                    "Expected all tensors to be on the same device, but found at least two devices, xpu:0 and cpu!"
                )
        if name in self.falls_back:
            if not self._warned:
                warnings.warn(FALLBACK, UserWarning, stacklevel=2)
            self._warned = True
            torch.ops.aten._to_cpu([leaf.inner for leaf in leaves if isinstance(leaf, OnCard)])
            self._wait()
        heavy = name.removesuffix("_backward") in ARITHMETIC
        self.busy(HEAVY if heavy else LIGHT)
        self.reserved += self.fragments if heavy else 0
        plain = tree_map(inner_of, (args, kwargs))
        out = func(*plain[0], **plain[1])
        reads = name in ("_local_scalar_dense", "equal") or (name == "copy_" and not isinstance(args[0], OnCard))
        if reads:
            self._wait()
            return args[0] if name == "copy_" else out
        same = {id(leaf.inner): leaf for leaf in leaves if isinstance(leaf, OnCard)}
        return tree_map(lambda x: self._outcome(x, same), out)

    def _outcome(self, value: Any, same: dict[int, OnCard]) -> Any:
        """What an operator gave: what it changed in place is the tensor that it was."""
        if not isinstance(value, torch.Tensor):
            return value
        return same[id(value)] if id(value) in same else self.wrap(value)

    def copy_there(self, value: torch.Tensor, *, non_blocking: bool) -> torch.Tensor:
        """A tensor of the host, on its way to the card; only from pinned memory does the host not wait for it."""
        asynchronous = non_blocking and getattr(value, "pinned", False)
        self.calls["copied without blocking" if asynchronous else "copied, blocking"] += 1
        self._alive()
        self.busy(LIGHT)
        if not asynchronous:
            self._wait()
        made: torch.Tensor = There.apply(value, self)
        return made

    def copy_back(self, value: OnCard) -> torch.Tensor:
        """A tensor of the card, in the host's memory: the host waits for it."""
        self._alive()
        self.busy(LIGHT)
        self._wait()
        made: torch.Tensor = Back.apply(value, self)
        return made


def install(monkeypatch: pytest.MonkeyPatch, count: int = 1) -> FakeXpu:
    """Puts the card below a `torch.xpu` that is imported afresh, and our clock where samples are timed."""
    import torch._dynamo  # optimizers import it, and it must find the torch.xpu that was built

    from ipexperf.bench import lazy, measure
    from ipexperf.bench.modes import _input

    card = FakeXpu(count)
    for name, value in card.boundary().items():
        monkeypatch.setattr(torch._C, name, value, raising=False)
    for name in [name for name in sys.modules if re.fullmatch(r"torch\.xpu(\..*)?", name)]:
        monkeypatch.delitem(sys.modules, name)
    owners = [torch, lazy.torch]
    for owner in owners:
        monkeypatch.setattr(owner, "xpu", None, raising=False)
    afresh = importlib.import_module("torch.xpu")
    for owner in owners:
        monkeypatch.setattr(owner, "xpu", afresh, raising=False)
    for module in (_input, measure):
        monkeypatch.setattr(module, "perf_counter", card.clock.perf_counter)
    # A module that moves gets new parameters: ours cannot take the place of others' storage.
    monkeypatch.setattr(torch.__future__, "_overwrite_module_params_on_conversion", True)
    real = torch.amp.autocast
    monkeypatch.setattr(torch.amp, "autocast", lambda kind, **more: real("cpu" if kind == "xpu" else kind, **more))
    return card
