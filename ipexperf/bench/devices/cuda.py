"""NVIDIA GPUs: here to prove the road that xpu shares."""

from __future__ import annotations

from ipexperf.bench import registry
from ipexperf.bench.devices._accelerator import Accelerator


class Cuda(Accelerator):
    name = "cuda"


registry.devices.add("cuda", Cuda())
