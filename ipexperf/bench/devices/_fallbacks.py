"""Operators that an accelerator leaves to the CPU: torch runs them there, warns at most once, and goes on."""

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
"""What torch's own CPU fallback calls first, whatever the backend and whatever it says: the profiler sees it."""
_NAMED = re.compile(r"The operator '(?P<op>[\w:.]+?)'?(?: is not currently supported)? ?on the XPU backend")
_UNNAMED = re.compile(r"fallback from XPU to CPU")
"""The wordings of torch-xpu-ops and of IPEX. The second is said once a process, and names no operator."""


def warned(messages: list[str]) -> Counter[str]:
    """The operators that warnings name as fallen back, and those of which a warning gives no name."""
    found: Counter[str] = Counter()
    for message in messages:
        if named := _NAMED.search(message):
            found[named.group("op")] += 1
        elif _UNNAMED.search(message):
            found["an operator without a name"] += 1
    return found


def of_step(step: Callable[[], Any]) -> Counter[str]:
    """One step under torch's profiler, and with every warning said: what fell back to the CPU, counted."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with _every_warning() as messages, torch.profiler.profile(activities=activities) as profile:
        step()
    profiled = Counter(_owner(event) for event in profile.events() if event.name == _TO_CPU)
    said = warned([str(message.message) for message in messages])
    # The warnings say less (a wording may be new) or the same again: they count where the profiler saw nothing.
    return profiled or said


def _owner(event: Any) -> str:
    """The operator that had to fall back: what the profiler has around its way to the CPU."""
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


def check(found: Counter[str]) -> Check:
    told = ", ".join(f"{name} x{count}" for name, count in found.most_common())
    return Check("fallbacks", not found, f"on the CPU: {told}" if found else "0", "0")
