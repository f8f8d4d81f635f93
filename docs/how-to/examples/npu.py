"""Another accelerator, `torch.npu`, registered for the suite by `--perf-load=npu.py`. Not seen on hardware."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import Device, Facts, Settings, WorkerError, register, torch


class Npu(Device):
    """A device with a queue of its own."""

    name = "npu"
    accelerator = True

    def why_not(self, facts: Facts) -> str | None:
        # An empty text means that torch sees the device in the interpreter of the workers.
        return facts.missing("torch") or facts.accelerators.get(self.name, "it was not looked for") or None

    def start(self, settings: Settings) -> None:
        del settings
        if not torch.npu.is_available():
            raise WorkerError("error", "torch sees no npu in the worker")
        torch.npu.set_device(0)

    def synchronise(self) -> None:
        torch.npu.synchronize()

    def put(self, value: Any) -> Any:
        return value.to(self.name)

    def reset_memory(self) -> None:
        torch.npu.reset_peak_memory_stats()

    def memory(self) -> dict[str, float]:
        return {"peak_memory": float(torch.npu.max_memory_allocated())}

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "properties": torch.npu.get_device_name(0)}


register(Npu())
