"""Check where the arithmetic ran: a network with weights on the device may still copy them away in every step."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ipexperf.bench.lazy import torch
from ipexperf.result import Check

_HEAVY = re.compile(r"(?:^|_)(?:conv(?!ert)\w*|addmm|add?bmm|baddbmm|b?mm|matmul|linear|\w*attention\w*)(?:_|$)")
"""Words in the names of operators that do heavy arithmetic, in any library."""


def of_step(step: Callable[[], Any]) -> Counter[str]:
    """Run one step and record the devices of all operands of its arithmetic, below autograd and graphs.

    Numbers without dimensions may be anywhere: torch itself hands them to kernels from the CPU.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    counts: Counter[str] = Counter()

    class OperandDevices(TorchDispatchMode):  # type: ignore[misc]  # torch is not followed
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            del types
            name = func.name().partition("::")[2].partition(".")[0]
            if _HEAVY.search(name):
                for kind in {tensor.device.type for tensor in _tensors((args, kwargs or {})) if tensor.dim()}:
                    counts[kind] += 1
            return func(*args, **(kwargs or {}))

    with _eager(), OperandDevices():
        step()
    return counts


def _eager() -> AbstractContextManager[Any]:
    """Run networks as they were before torch.compile: below a dispatch mode Dynamo gives up their code for good."""
    if "torch._dynamo" not in sys.modules:  # nothing was compiled, and importing it takes a second
        return nullcontext()
    stance: AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
    return stance


def _tensors(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


def check(counts: Counter[str], device: str) -> Check:
    text = ", ".join(f"{count} on {kind}" for kind, count in counts.most_common()) or "no operator that does arithmetic"
    return Check("arithmetic", set(counts) == {device}, text, f"{device} in all")
