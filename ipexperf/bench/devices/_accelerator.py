"""What xpu and cuda share: one API under two names in torch."""

from __future__ import annotations

from typing import Any

from ipexperf.bench.facts import Facts
from ipexperf.bench.kinds import Device, Settings
from ipexperf.bench.lazy import torch
from ipexperf.errors import WorkerError


class Accelerator(Device):
    """A device with a queue of its own: nothing is done until it was synchronised."""

    def why_not(self, facts: Facts) -> str | None:
        return facts.missing("torch") or facts.accelerators.get(self.name, "it was not looked for") or None

    @property
    def _api(self) -> Any:
        return getattr(torch, self.name)

    def start(self, settings: Settings) -> None:
        del settings
        if not self._api.is_available():
            raise WorkerError("error", f"torch sees no {self.name} in the worker: it ran nowhere else instead")
        self._api.set_device(0)

    def synchronise(self) -> None:
        self._api.synchronize()

    def put(self, value: Any) -> Any:
        """Copies from pinned memory without blocking, as an input pipeline does; modules move as they are."""
        if isinstance(value, torch.Tensor) and value.device.type == "cpu":
            value = value.pin_memory() if self.name == "cuda" else value.pin_memory(self.name)
            return value.to(self.name, non_blocking=True)
        return value.to(self.name)

    def reset_peak_memory(self) -> None:
        self._api.reset_peak_memory_stats()

    def peak_memory(self) -> int:
        return int(self._api.max_memory_allocated())

    def describe(self) -> dict[str, Any]:
        properties = self._api.get_device_properties(0)
        return {
            "name": self.name,
            "properties": self._api.get_device_name(0),
            "memory": int(properties.total_memory),
            "driver": getattr(properties, "driver_version", None),
            "runtime": getattr(torch.version, self.name, None),
        }
