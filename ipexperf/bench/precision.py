"""A dtype in torch and on the CPU: its name, autocast, and emulation."""

from __future__ import annotations

from typing import Any

from ipexperf.bench.lazy import torch
from ipexperf.dtypes import DTYPES


def torch_dtype(dtype: str) -> Any:
    return getattr(torch, DTYPES[dtype].torch)


def dtype_name(dtype: str) -> str:
    """Return how a user's script names the dtype."""
    return f"torch.{DTYPES[dtype].torch}"


def emulated(device: str, dtype: str, flags: frozenset[str]) -> bool:
    """Return True if the CPU emulates the dtype. False if the kernel reports no CPU flags: it is unknown then."""
    native = DTYPES[dtype].native
    return device == "cpu" and bool(flags and native) and not flags & native


def autocast(device: str, dtype: str, *, cache: bool = True) -> Any:
    """Return autocast in the case's dtype. In fp32 and int8 it is disabled, so that the code path is the same."""
    enabled = DTYPES[dtype].autocast
    torch_kind = torch_dtype(dtype) if enabled else torch.bfloat16
    return torch.amp.autocast(device, dtype=torch_kind, enabled=enabled, cache_enabled=cache)


def script_of_autocast(device: str, dtype: str, *, cache: bool = True) -> str:
    """Return the context in which a user's script computes in the dtype, or an empty text if it needs none.

    Without the cache, as in inference here: a trace cannot hold weights that were cast before.
    """
    off = "" if cache else ", cache_enabled=False"
    return f'torch.autocast("{device}", dtype={dtype_name(dtype)}{off})' if DTYPES[dtype].autocast else ""
