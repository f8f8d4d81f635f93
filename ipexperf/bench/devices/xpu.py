"""Intel GPUs, through torch's own XPU support or IPEX's."""

from __future__ import annotations

from ipexperf.bench import registry
from ipexperf.bench.devices._accelerator import Accelerator


class Xpu(Accelerator):
    name = "xpu"


registry.devices.add("xpu", Xpu())
