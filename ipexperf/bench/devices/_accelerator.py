"""The common base of xpu and cuda, which have the same API in torch under two names."""

from __future__ import annotations

import os
import re
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ipexperf.bench import measure, outcome
from ipexperf.bench.cell import Settings
from ipexperf.bench.device import Device
from ipexperf.bench.devices._telemetry import CardReading, Telemetry, Tool
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine import cards, diagnosis
from ipexperf.bench.machine.facts import Facts
from ipexperf.errors import UsageError, WorkerError
from ipexperf.result import Check

CLOCKED = 5
"""Number of blocks that are timed by the device's own clock, after the samples."""
GROWN = 1.05
"""The allocator's reserve counts as grown from this multiple of its size after warm-up."""
_HEAVY = re.compile(r"(?:^|_)(?:conv(?!ert)\w*|addmm|add?bmm|baddbmm|b?mm|matmul|linear|\w*attention\w*)(?:_|$)")
"""Words in the names of operators that do heavy arithmetic, in any library."""
SLACK = 1.05
"""Tolerated relative difference between the two clocks."""
GRAIN = 3e-4
"""Seconds per block that the two events may add to the device's time."""
SHORT = 0.5
"""The events enclose what the host times: a device's clock that shows less than this share of it is wrong."""


class Accelerator(Device):
    """A device with a queue: work is finished only after synchronising."""

    accelerator = True
    variable: str
    """The vendor's variable that selects the cards visible to a process."""
    properties: tuple[str, ...] = ()
    """Properties of the card for the record. Older torch versions know fewer."""
    tool: Tool | None = None
    """The vendor's tool, for what the kernel does not tell of a card."""
    telemetry = Telemetry()

    def __init__(self) -> None:
        self._stopwatch: Stopwatch | None = None
        self._reading: CardReading | None = None
        self._reserved: int | None = None
        self._reserved_warm: int | None = None
        """The allocator's peak reserve after warm-up."""

    def why_not(self, facts: Facts) -> str | None:
        return facts.missing("torch") or facts.accelerators.get(self.name, "it was not looked for") or None

    @property
    def _api(self) -> Any:
        return getattr(torch, self.name)

    @property
    def double(self) -> bool:
        return bool(getattr(self._api.get_device_properties(0), "has_fp64", True))

    def variables(self, index: int, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the vendor's variable with one of the visible cards, so that a worker sees only that one."""
        allowed = self.allowed(environment)
        if allowed is None:
            return {self.variable: str(index)}
        by, cards = allowed
        if index >= len(cards):
            text = f"{by}={environment[by]} leaves {len(cards)}"
            raise UsageError(f"--device {self.name}:{index}: there is no such device: {text}")
        return {self.variable: cards[index]}

    def allowed(self, environment: Mapping[str, str]) -> tuple[str, list[str]] | None:
        """Return the variable that leaves only some of the cards, and their names. None if all may be used."""
        names = environment.get(self.variable)
        return (self.variable, [name.strip() for name in names.split(",")]) if names else None

    def start(self, settings: Settings) -> None:
        if reason := diagnosis.why_not(self.name, torch):
            # The device existed when the case was planned.
            raise WorkerError("device_lost", f"{reason}; nothing was run on another device instead")
        count = self._api.device_count()
        if count != 1:
            pin = f"{self.variable}={os.environ.get(self.variable, '')}"
            raise WorkerError("error", f"{pin} should leave the worker one {self.name} device, but torch sees {count}")
        self._api.set_device(0)
        self._stopwatch, self._reading, self._reserved, self._reserved_warm = None, None, None, None

    def synchronise(self) -> None:
        self._api.synchronize()

    def put(self, value: Any) -> Any:
        """Copy tensors from pinned memory without blocking, as an input pipeline does. Move modules."""
        if isinstance(value, torch.Tensor) and value.device.type == "cpu":
            return self.pin(value).to(self.name, non_blocking=True)
        return value.to(self.name)

    def pin(self, value: Any) -> Any:
        # Since torch 2.5 memory is pinned for the current accelerator; naming one is deprecated.
        return value if value.is_pinned() else value.pin_memory()

    def reset_memory(self) -> None:
        self._api.reset_peak_memory_stats()

    def memory(self) -> dict[str, float]:
        self._reserved = int(self._api.max_memory_reserved())
        peak, held = float(self._api.max_memory_allocated()), int(self._api.memory_allocated())
        return {"peak_memory": peak, "held_memory": held}

    def room(self) -> float | None:
        try:
            free, total = self._api.mem_get_info()
        except (AttributeError, RuntimeError):  # an older torch, or a driver that does not tell
            return None
        return float(free / total)

    def taken(self) -> float:
        return float(self._api.max_memory_reserved() / self._api.get_device_properties(0).total_memory)

    def warmed(self) -> None:
        self._reserved_warm = int(self._api.max_memory_reserved())

    def describe(self) -> dict[str, Any]:
        properties = self._api.get_device_properties(0)
        values = {name: getattr(properties, name) for name in self.properties if hasattr(properties, name)}
        return {
            "name": self.name,
            "properties": self._api.get_device_name(0),
            "memory": int(properties.total_memory),
            "driver": self.driver(properties),
            "runtime": getattr(torch.version, self.name, None),
            "pinned": f"{self.variable}={os.environ.get(self.variable, '')}",
            **(cards.described(address, self.telemetry.root) if (address := self.address()) else {}),
            **{
                name: value if isinstance(value, (bool, int, list, tuple)) else str(value)
                for name, value in values.items()
            },
        }

    def driver(self, properties: Any) -> str | None:
        """Return the version of the driver."""
        return getattr(properties, "driver_version", None)

    def _clocked(self, step: Callable[[], Any], block: int) -> Stopwatch:
        """Time some blocks of steps on first use, and return the stopwatch with their times."""
        if self._stopwatch is None:
            stopwatch = Stopwatch(self._api)

            def clocked() -> None:
                stopwatch.start()
                for _ in range(block):
                    step()
                stopwatch.stop()

            for _ in range(CLOCKED):
                stopwatch.read(measure.timed(clocked, self.synchronise), block)
            self._stopwatch = stopwatch
        return self._stopwatch

    def proof(self, step: Callable[[], Any], block: int) -> list[Check]:
        counts = arithmetic_devices(step)
        text = ", ".join(f"{count} on {kind}" for kind, count in counts.most_common())
        arithmetic = Check(
            "arithmetic", set(counts) == {self.name}, text or "no operator that does arithmetic", f"{self.name} in all"
        )
        return [arithmetic, self._clocked(step, block).check()]

    def metrics(self, step: Callable[[], Any], block: int) -> dict[str, float]:
        metrics = {} if self._reserved is None else {"reserved_memory": float(self._reserved)}
        device_time = self._clocked(step, block).device_time
        if device_time is not None:
            metrics["device_time"] = device_time
        self._reading = self.telemetry.watch(step, self.synchronise, block, self.tool, self.card())
        return {**metrics, **self._reading.metrics()}

    def card(self) -> str | None:
        """Return the vendor's identifier of the card, if torch knows it."""
        return None

    def address(self) -> str | None:
        """Return the PCI address of the card, if torch or the kernel tells. The kernel does so once it was used."""
        return self.telemetry.used()

    def notes(self) -> list[str]:
        if self._stopwatch is None or self._reading is None:
            return []  # nothing was measured yet
        unable = self._stopwatch.unable
        silent = [f"{self.name} has no timer here: {unable}"] if unable else []
        silent += filter(None, [self._growth()])
        if self._reading.frequency is None:
            silent.append(f"the system does not report the clock rate of the {self.name} device")
        return [*silent, *self._reading.notes]

    def _growth(self) -> str:
        """Return a note if the allocator's reserve grew while warm steps were sampled, or an empty text."""
        warm, end = self._reserved_warm, self._reserved
        if not warm or end is None or end <= GROWN * warm:
            return ""
        return (
            f"the allocator's reserve grew from {warm / 2**20:,.0f} to {end / 2**20:,.0f} MiB while warm steps were "
            "sampled: memory fragments or leaks, and a longer run may find it full"
        )


def arithmetic_devices(step: Callable[[], Any]) -> Counter[str]:
    """Run one step and record the devices of all operands of its arithmetic, below autograd and graphs.

    Numbers without dimensions may be anywhere: torch itself hands them to kernels from the CPU.
    """
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    counts: Counter[str] = Counter()

    class OperandDevices(TorchDispatchMode):  # type: ignore[misc]  # torch is not followed
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = func.name().partition("::")[2].partition(".")[0]
            if _HEAVY.search(name):
                tensors = (leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor))
                counts.update({tensor.device.type for tensor in tensors if tensor.dim()})
            return func(*args, **(kwargs or {}))

    with _eager(), OperandDevices():
        step()
    return counts


def _eager() -> AbstractContextManager[Any]:
    """Run networks as they were before torch.compile: below a dispatch mode Dynamo gives up their code for good."""
    if "torch._dynamo" not in sys.modules:  # nothing was compiled, and importing it takes a second
        return nullcontext()
    stance: AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
    return stance


class Stopwatch:
    """Records events around a block of steps."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self._late: list[bool] = []
        """For each block, whether the device was not done when the host stopped its clock."""
        self._times: list[float] = []
        """Seconds per step of each block, by the device's clock."""
        self._longer = ""
        """The first block that took longer by the device's clock, or an empty text."""
        self.unable = ""
        """Why this runtime cannot measure times between events, or an empty text."""

    def start(self) -> None:
        try:
            self._mark(timing=not self.unable)
        except (RuntimeError, NotImplementedError) as error:
            self._give_up(error)
            self._mark(timing=False)

    def _mark(self, *, timing: bool) -> None:
        self._begin, self._end = (self._api.Event(enable_timing=timing) for _ in range(2))
        self._begin.record()

    def stop(self) -> None:
        self._end.record()

    def read(self, host: float, steps: int) -> None:
        """Read the device's clock. Called after the host has stopped its clock, and so after synchronising."""
        self._late.append(not self._end.query())
        self._end.synchronize()
        elapsed = self._elapsed()
        if elapsed is None:
            return
        if elapsed < SHORT * host - GRAIN:
            self.unable = f"its clock says {elapsed:.4g} s for a block that took {host:.4g} s"
            return
        self._times.append(elapsed / steps)
        if elapsed > host * SLACK + GRAIN and not self._longer:
            self._longer = f"; device {elapsed:.4f} s, host {host:.4f} s"

    def _elapsed(self) -> float | None:
        if self.unable:
            return None
        try:
            return float(self._begin.elapsed_time(self._end)) / 1e3
        except (RuntimeError, NotImplementedError) as error:
            self._give_up(error)
            return None

    def _give_up(self, error: Exception) -> None:
        """Give up if the runtime has no such clock. Raise if the device was lost."""
        if self.unable or outcome.indicated(str(error)):
            raise error
        self.unable = str(error).strip().split("\n")[0]

    @property
    def device_time(self) -> float | None:
        """Return the seconds per step on the device: the median over blocks. None without a clock to be trusted."""
        return statistics.median(self._times) if self._times and not self.unable else None

    def check(self) -> Check:
        """Check that the host waited for the device: it had finished, and took no longer than the host measured."""
        text = f"{sum(self._late)} of {len(self._late)} blocks ended before the device did{self._longer}"
        return Check("synchronised", not any(self._late) and not self._longer, text, "0; device within host")
