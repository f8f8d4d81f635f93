"""A fake of `torch.xpu` for machines without an Intel GPU: asynchronous, on a clock of its own.

Its tensors are CPU tensors that say `xpu`. What is asked of it lies in a queue and costs pretended device time; only a
synchronisation, or reading a value back, lets the host's clock catch up: whoever forgets to wait measures the queue.
The properties are those that torch printed of real cards, the messages those that torch's XPU backend prints.
"""

from __future__ import annotations

import sys
import types
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
    """A mark in the queue."""

    card: FakeXpu

    def __init__(self, enable_timing: bool = False) -> None:  # noqa: FBT001, FBT002 - as torch's
        self.timing = enable_timing
        self.at = 0.0

    def record(self, stream: Any = None) -> None:
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
        return (end_event.at - self.at) * 1e3


class FakeXpu(types.ModuleType):
    """The module `torch.xpu`, with one card that can be told to misbehave."""

    def __init__(self, count: int = 1) -> None:
        super().__init__("torch.xpu")
        self.clock = Clock()
        self.free_at = 0.0
        self.calls: Counter[str] = Counter()
        self.count = count
        self.of_driver: int | None = None
        """What torch from 2.13 on counts until it is initialised: the driver's cards, whichever are selected."""
        self._initialised = False
        self.properties = Properties()
        self.compiled = True
        self.waits = True
        """Whether synchronize waits: a device that lies does not."""
        self.without_timing = False
        self.lost = False
        self.falls_back: set[str] = set()
        """Operators for which it has no kernel."""
        self._warned = False
        self.held = self.peak = self.reserved = 0
        self.Event = type("Event", (Event,), {"card": self})

    # What torch.xpu has.
    def _is_compiled(self) -> bool:
        return self.compiled

    def init(self) -> None:
        if not self.count:
            raise RuntimeError("No XPU devices are available.")
        self._initialised = True

    def _lazy_init(self) -> None:
        self.init()

    def is_available(self) -> bool:
        return self.compiled and self.device_count() > 0

    def is_initialized(self) -> bool:
        return True

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        self.calls["manual_seed_all"] += 1

    def device_count(self) -> int:
        return self.count if self._initialised or self.of_driver is None else self.of_driver

    def current_device(self) -> int:
        return 0

    def set_device(self, device: Any) -> None:
        self.calls[f"set_device({device})"] += 1

    def get_device_name(self, device: Any = None) -> str:
        return self.properties.name

    def get_device_properties(self, device: Any = None) -> Properties:
        return self.properties

    def synchronize(self, device: Any = None) -> None:
        self.calls["synchronize"] += 1
        self._alive()
        if self.waits:
            self._wait()

    def max_memory_allocated(self, device: Any = None) -> int:
        return self.peak

    def max_memory_reserved(self, device: Any = None) -> int:
        return self.reserved

    def memory_allocated(self, device: Any = None) -> int:
        return self.held

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        self.calls["reset_peak_memory_stats"] += 1
        self.peak = self.reserved = self.held

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
        self.busy(HEAVY if name.removesuffix("_backward") in ARITHMETIC else LIGHT)
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


def install(monkeypatch: pytest.MonkeyPatch, count: int = 1, kind: type[FakeXpu] | None = None) -> FakeXpu:
    """Puts the fake where `torch.xpu` is, and our clock where samples are timed."""
    import torch._dynamo  # optimizers import it, and it must find the torch.xpu that was built

    from ipexperf.bench import lazy, measure
    from ipexperf.bench.modes import _input

    card = (kind or FakeXpu)(count)
    monkeypatch.setitem(sys.modules, "torch.xpu", card)
    for owner in (torch, lazy.torch):
        monkeypatch.setattr(owner, "xpu", card, raising=False)
    for module in (_input, measure):
        monkeypatch.setattr(module, "perf_counter", card.clock.perf_counter)
    # A module that moves gets new parameters: ours cannot take the place of others' storage.
    monkeypatch.setattr(torch.__future__, "_overwrite_module_params_on_conversion", True)
    real = torch.amp.autocast
    monkeypatch.setattr(torch.amp, "autocast", lambda kind, **more: real("cpu" if kind == "xpu" else kind, **more))
    return card
