"""`--perf-start`: whether launches are forked from a process that has imported everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipexperf.bench.cell import Cell
    from ipexperf.case import Case

AUTO, FRESH = "auto", "fresh"
"""`auto`: fresh interpreters in the first round of a run, forked ones in later rounds."""


def why_fresh(cell: Cell | Case, *, placed: bool) -> str:
    """Return the reason why workers of the cell are never forked, or an empty text."""
    from ipexperf.bench import registry  # now, not by every pytest run that declares the options

    if registry.devices.get(cell.device).accelerator:
        return f"the runtime of a device such as {cell.device} does not survive a fork"
    if placed:
        return "a worker is placed before it imports anything"
    return registry.modes.get(cell.mode).fresh
