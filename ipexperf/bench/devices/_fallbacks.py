"""Detect operators that fall back from an accelerator to the CPU, about which torch warns at most once."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ipexperf.bench.lazy import torch
from ipexperf.result import Check

_TO_CPU = "aten::_to_cpu"
"""The operator that torch's CPU fallback calls first on any backend, visible in the profiler."""
_NAMED = re.compile(r"The operator '(?P<op>[\w:.]+?)'?(?: is not currently supported)? ?on the XPU backend")
_UNNAMED = re.compile(r"fallback from XPU to CPU")
"""Warnings of torch-xpu-ops and of IPEX. The second appears once per process and names no operator."""


def warned(messages: list[str]) -> Counter[str]:
    """Return the operators that warnings name as fallen back, and a placeholder for unnamed ones."""
    counts: Counter[str] = Counter()
    for message in messages:
        if named := _NAMED.search(message):
            counts[named.group("op")] += 1
        elif _UNNAMED.search(message):
            counts["an operator without a name"] += 1
    return counts


def of_step(step: Callable[[], Any]) -> Counter[str]:
    """Run one step with the profiler and all warnings enabled. Return the operators that fell back, with counts."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with _every_warning() as messages, torch.profiler.profile(activities=activities) as profile:
        step()
    profiled = Counter(_owner(event) for event in profile.events() if event.name == _TO_CPU)
    counts = warned([str(message.message) for message in messages])
    # Warnings tell less, or the same again: use them only if the profiler saw nothing.
    return profiled or counts


def _owner(event: Any) -> str:
    """Return the operator around the fallback in the profiler's trace."""
    while event.cpu_parent is not None:
        event = event.cpu_parent
        if "::" in event.name:
            return str(event.name)
    return "an operator without a name"


@contextmanager
def _every_warning() -> Iterator[list[warnings.WarningMessage]]:
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as messages:
            warnings.simplefilter("always")
            yield messages
    finally:
        torch.set_warn_always(always)
        for message in messages:
            if not (_NAMED.search(str(message.message)) or _UNNAMED.search(str(message.message))):
                warnings.warn_explicit(message.message, message.category, message.filename, message.lineno)


def check(counts: Counter[str]) -> Check:
    text = ", ".join(f"{name} x{count}" for name, count in counts.most_common())
    return Check("fallbacks", not counts, f"on the CPU: {text}" if counts else "0", "0")
