"""What torch and the CPU do with a dtype: its name there, autocast, and emulation."""

from __future__ import annotations

from typing import Any

from ipexperf.bench.lazy import torch
from ipexperf.dtypes import DTYPES
from ipexperf.result import EMULATED


def torch_dtype(dtype: str) -> Any:
    return getattr(torch, DTYPES[dtype].torch)


def emulated(device: str, dtype: str, flags: frozenset[str]) -> list[str]:
    """Return a note if the CPU emulates the dtype. Empty if the kernel reports no CPU flags."""
    if device != "cpu" or not flags or flags & (DTYPES[dtype].native or flags):
        return []
    return [f"{EMULATED}: this CPU has no instructions for {dtype}"]


def autocast(device: str, dtype: str, *, cache: bool = True) -> Any:
    """Return autocast in the case's dtype. In fp32 and int8 it is disabled, so that the code path is the same."""
    enabled = DTYPES[dtype].autocast
    kind = torch_dtype(dtype) if enabled else torch.bfloat16
    return torch.amp.autocast(device, dtype=kind, enabled=enabled, cache_enabled=cache)
