"""`--perf-start`: whether launches are forked from a process that has imported everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipexperf.case import Case

AUTO, FRESH = "auto", "fresh"
"""`auto`: fresh interpreters in the first round of a run, forked ones in later rounds."""


def why_fresh(case: Case, *, placed: bool) -> str:
    """Return the reason why workers of the case are never forked, or an empty text."""
    from ipexperf.bench import registry  # now, not by every pytest run that declares the options

    if registry.devices.get(case.device).accelerator:
        return f"the runtime of a device such as {case.device} does not survive a fork"
    if placed:
        return "a worker is placed before it imports anything"
    return registry.execution(case).fresh
