"""Torch's profiler as it is where Intel's PTI does not know the driver: its first start in a process raises."""

from __future__ import annotations

from typing import Any

import torch

prepare = torch.autograd.profiler._prepare_profiler


def refuse(*_: Any, **__: Any) -> None:
    torch.autograd.profiler._prepare_profiler = prepare
    raise RuntimeError("Fail to enable Kineto Profiler on XPU due to error code: 2")


torch.autograd.profiler._prepare_profiler = refuse
