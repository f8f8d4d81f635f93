"""Check that float32 is computed in full precision: a setting may allow fewer bits, for the whole process.

The profiler does not show that: operands are float32 all the same.
"""

from __future__ import annotations

import os
import sys

from ipexperf.bench import registry
from ipexperf.bench.lazy import torch
from ipexperf.dtypes import PLAIN
from ipexperf.result import Check

KINDS = ("matmul", "conv", "rnn")
FULL = ("none", "ieee")
"""Values of a setting that allow nothing else. `none` is the default, which is full precision too."""
STRICT = ("", "strict", "0")


def proof(dtype: str, device: str) -> list[Check]:
    """Return evidence for a case in fp32 that nothing on its device may compute in fewer bits."""
    if dtype != PLAIN:
        return []
    lowered = {**reduced(device), **_beside_torch(device)}
    text = ", ".join(f"{name} in {precision}" for name, precision in lowered.items()) or "all in full precision"
    return [Check("float32", not lowered, text, "all in full precision")]


def reduced(device: str) -> dict[str, str]:
    """Return what may compute float32 in fewer bits on this device, and in which precision."""
    if not hasattr(torch.backends, "fp32_precision"):  # before torch 2.9
        cudnn = "cudnn" in registry.devices.get(device).float32_in and torch.backends.cudnn.allow_tf32
        precision = torch.get_float32_matmul_precision()
        lowered = {} if precision == "highest" else {"products": precision}
        return {**lowered, "cudnn": "tf32"} if cudnn else lowered
    # One setting covers another, and torch refuses to be asked for the old ones once a new one was set.
    lowered = {}
    for library in registry.devices.get(device).float32_in:
        for kind in KINDS:
            setting = getattr(getattr(torch.backends, library), kind, None)
            precision = getattr(setting, "fp32_precision", FULL[0])
            if precision not in FULL:
                lowered[f"{library}.{kind}"] = precision
    return lowered


def _beside_torch(device: str) -> dict[str, str]:
    """Return what allows fewer bits without a setting of torch's: variables of its libraries, and IPEX."""
    lowered = {
        name: value
        for name in registry.devices.get(device).float32_variables
        if (value := os.environ.get(name, "")).lower() not in STRICT
    }
    ipex = sys.modules.get("intel_extension_for_pytorch")
    # IPEX for the CPU cannot be asked about xpu, where tests imitate a card.
    if ipex is not None and device == "cpu" and (mode := ipex.get_fp32_math_mode(device).name) != "FP32":
        lowered["ipex"] = mode
    return lowered
