"""dtypes: torch's name, the autocast context of a practitioner, and how far results may be from float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipexperf.bench.lazy import torch


@dataclass(frozen=True, slots=True)
class Bounds:
    """The largest relative RMSE and the smallest top-1 agreement with the float64 reference."""

    fidelity: float
    agreement: float


BOUNDS = {
    "fp32": Bounds(fidelity=1e-4, agreement=0.995),
    "bf16": Bounds(fidelity=0.03, agreement=0.97),
    "fp16": Bounds(fidelity=0.02, agreement=0.985),
}
"""Measured on right code (ResNet-18, digits): fp32 4e-7, bf16 3e-3. Ten times that and more is not rounding."""

_TORCH = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def torch_dtype(dtype: str) -> Any:
    return getattr(torch, _TORCH[dtype])


def autocast(device: str, dtype: str, *, cache: bool = True) -> Any:
    """Autocast in the case's dtype; in fp32 it is there and switched off, so that the code path is one."""
    return torch.amp.autocast(
        device,
        dtype=torch_dtype(dtype) if dtype != "fp32" else torch.bfloat16,
        enabled=dtype != "fp32",
        cache_enabled=cache,
    )
