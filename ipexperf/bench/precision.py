"""dtypes: torch's name, the autocast context of a practitioner, and how far results may be from float64."""

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
    """So many times the error of stock PyTorch, eager, in the same dtype, may a result be off."""
    sensitive: float = 0.0
    """As far off as this may be what is off at most twice as far as stock's eager: there it is the network."""


BOUNDS = {
    "fp32": Bounds(fidelity=1e-4, agreement=0.995),
    "bf16": Bounds(fidelity=0.03, agreement=0.97, sensitive=0.2),
    "fp16": Bounds(fidelity=0.02, agreement=0.985, sensitive=0.1),
    "int8": Bounds(fidelity=0.225, agreement=0.905, roundings=3.0),
}
"""Measured on right code (ResNet-18, digits): fp32 4e-7, bf16 3e-3. Ten times that and more is not rounding.

int8 loses more, and how much depends on the network: stock PyTorch's own recipe gave 0.022 on ResNet-18 and 0.075 on
ResNet-50, with 2 and 8 other answers among 256. The bound is three times what it gives for the network at hand, and
three times what it gave for ResNet-50 at most. Nothing goes beyond that: stock's recipe is one of many.

MobileNet v2 in bf16 is 0.08 off in stock PyTorch, eager, and 0.13 traced, and answers as float64 does. Of fp16 nothing
was seen: it has three bits more.
"""

INSTRUCTIONS = {
    "bf16": frozenset({"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16"}),
    "fp16": frozenset({"avx512_fp16", "amx_fp16", "avx_ne_convert", "asimdhp"}),
}
"""What a processor needs of to compute in a dtype itself, as the kernel names it: one of them is enough."""
LOW = ("bf16", "fp16")
"""What autocast casts to. int8 is no such dtype: its network was converted beforehand."""
_TORCH = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def torch_dtype(dtype: str) -> Any:
    return getattr(torch, _TORCH[dtype])


def emulated(device: str, dtype: str, flags: frozenset[str]) -> list[str]:
    """The note of a launch whose dtype is emulated; a kernel that tells no instruction sets tells nothing of this."""
    if device != "cpu" or not flags or flags & INSTRUCTIONS.get(dtype, flags):
        return []
    return [f"{EMULATED}: this CPU has no instructions for {dtype}"]


def autocast(device: str, dtype: str, *, cache: bool = True) -> Any:
    """Autocast in the case's dtype; in fp32 and int8 it is there and switched off, so that the code path is one."""
    return torch.amp.autocast(
        device,
        dtype=torch_dtype(dtype) if dtype in LOW else torch.bfloat16,
        enabled=dtype in LOW,
        cache_enabled=cache,
    )
