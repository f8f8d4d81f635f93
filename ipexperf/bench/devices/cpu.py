"""The CPU: threads set once before anything is built, because packed weights remember them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ipexperf.bench import heap, placement, registry
from ipexperf.bench.facts import Facts
from ipexperf.bench.kinds import Cell, Device, Settings
from ipexperf.bench.lazy import torch
from ipexperf.case import Case

LANGUAGE = ("text_classification", "language_modelling", "recommendation")
"""The tasks whose networks are products of matrices; those of the others convolve."""
_RESET_PEAK = "5"
"""What the kernel wants in clear_refs to forget the highest resident size so far."""


class Cpu(Device):
    name = "cpu"
    called = ("intel",)
    hosted = True
    pulse = True
    _before = 0
    """Bytes that were resident at the reset: the libraries, before the case took anything."""

    def why_not(self, facts: Facts) -> str | None:
        return facts.missing("torch")

    def yardstick(self, case: Case | Cell) -> tuple[str, str] | None:
        """Of the same class of work, and of its dtype where the yardstick has that."""
        images = registry.models.get(case.model).task not in LANGUAGE
        return ("convolution" if images else "product"), ("bfloat16" if case.dtype == "bf16" else "float32")

    def start(self, settings: Settings) -> None:
        torch.set_num_threads(settings.threads or len(placement.allowed()))

    def synchronise(self) -> None:
        """Nothing to wait for: every call returns when it is done."""

    def put(self, value: Any) -> Any:
        return value

    def reset_peak_memory(self) -> None:
        heap.trim()  # what imports took and freed is not what the case takes
        Path("/proc/self/clear_refs").write_text(_RESET_PEAK)
        self._before = _peak()

    def peak_memory(self) -> int:
        """What the case took, as on a device of its own: not what torch and IPEX are, however little the case does."""
        return max(0, _peak() - self._before)

    def metrics(self, step: Callable[[], Any], block: int) -> dict[str, float]:
        del step, block
        return {"library_memory": float(self._before)}


def _peak() -> int:
    """The highest resident size of this process since the last reset."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    if found is None:
        raise RuntimeError("the kernel does not tell VmHWM")
    return int(found.group(1)) * 1024


registry.devices.add("cpu", Cpu())
