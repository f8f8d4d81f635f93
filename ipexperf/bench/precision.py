"""dtypes: their names in torch, their autocast context, and how far results may be from float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipexperf.bench.lazy import torch
from ipexperf.result import EMULATED


@dataclass(frozen=True, slots=True)
class Bounds:
    """The largest relative RMSE and the smallest top-1 agreement with the float64 reference."""

    fidelity: float
    agreement: float
    roundings: float = 5.0
    """A result may have this many times the error of eager stock PyTorch in the same dtype."""
    sensitive: float = 0.0
    """Absolute bound for results with at most twice the error of eager stock PyTorch: the network amplifies it."""


BOUNDS = {
    "fp32": Bounds(fidelity=1e-4, agreement=0.995),
    "bf16": Bounds(fidelity=0.03, agreement=0.97, sensitive=0.2),
    "fp16": Bounds(fidelity=0.02, agreement=0.985, sensitive=0.1),
    "int8": Bounds(fidelity=0.225, agreement=0.905, roundings=3.0),
}
"""Measured on correct code (ResNet-18, digits): fp32 4e-7, bf16 3e-3. Ten times that and more is not rounding.

The error of int8 is larger and depends on the network: stock PyTorch's recipe gave 0.022 on ResNet-18 and 0.075 on
ResNet-50, with 2 and 8 different answers of 256. The bound is three times its error for the network at hand, but at
most three times that for ResNet-50, because stock's recipe is one of many.

MobileNet v2 in bf16 has an error of 0.08 in eager stock PyTorch and 0.13 traced, with the answers of float64. fp16 was
not measured: it has three more bits than bf16.
"""

INSTRUCTIONS = {
    "bf16": frozenset({"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16"}),
    "fp16": frozenset({"avx512_fp16", "amx_fp16", "avx_ne_convert", "asimdhp"}),
}
"""CPU flags for each dtype, any of which gives native arithmetic."""
LOW = ("bf16", "fp16")
"""dtypes of autocast. int8 is none: its network is converted in advance."""
_TORCH = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def torch_dtype(dtype: str) -> Any:
    return getattr(torch, _TORCH[dtype])


def emulated(device: str, dtype: str, flags: frozenset[str]) -> list[str]:
    """Return a note if the CPU emulates the dtype. Empty if the kernel reports no CPU flags."""
    if device != "cpu" or not flags or flags & INSTRUCTIONS.get(dtype, flags):
        return []
    return [f"{EMULATED}: this CPU has no instructions for {dtype}"]


def autocast(device: str, dtype: str, *, cache: bool = True) -> Any:
    """Return autocast in the case's dtype. In fp32 and int8 it is disabled, so that the code path is the same."""
    return torch.amp.autocast(
        device,
        dtype=torch_dtype(dtype) if dtype in LOW else torch.bfloat16,
        enabled=dtype in LOW,
        cache_enabled=cache,
    )
