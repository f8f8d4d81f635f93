"""NVIDIA GPUs. They share their code with xpu."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.cell import Settings
from ipexperf.bench.devices._accelerator import Accelerator
from ipexperf.bench.devices._telemetry import NVIDIA_SMI
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine import diagnosis, kernel_files

_DRIVER = Path("/proc/driver/nvidia/version")


class Cuda(Accelerator):
    name = "cuda"
    called = ("gpu", "nvidia")
    variable = "CUDA_VISIBLE_DEVICES"
    vendor = diagnosis.NVIDIA
    properties = ("major", "minor", "multi_processor_count", "is_integrated", "L2_cache_size", "uuid", "pci_bus_id")
    tool = NVIDIA_SMI
    float32_in = ("cuda", "cudnn")
    float32_variables = ("NVIDIA_TF32_OVERRIDE",)
    collective = "nccl"

    def start(self, settings: Settings) -> None:
        super().start(settings)
        # By default torch lets cuDNN round the float32 inputs of convolutions to 10 bits.
        torch.backends.cudnn.allow_tf32 = False

    def driver(self, properties: Any) -> str | None:
        """Read the version from the kernel module: torch does not know it."""
        match = re.search(r"Kernel Module.*?\s(\d+[\d.]+)", kernel_files.text(_DRIVER) or "")
        return match.group(1) if match else None

    def card(self) -> str | None:
        uuid = getattr(self._api.get_device_properties(0), "uuid", None)
        return f"GPU-{uuid}" if uuid is not None else None

    def address(self) -> str | None:
        card = self._api.get_device_properties(0)
        try:
            return f"{card.pci_domain_id:04x}:{card.pci_bus_id:02x}:{card.pci_device_id:02x}.0"
        except AttributeError:  # an older torch
            return None


registry.devices.add("cuda", Cuda())
