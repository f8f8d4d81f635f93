"""`--perf-start`: which launches are forked from a process that has imported everything, and how that names a case."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipexperf.bench.api import Cell
    from ipexperf.case import Case

KNOB = "start"
"""The name of the knob that says how the workers of a case start."""
AUTO, FRESH, FORK = "auto", "fresh", "fork"
"""`auto`: fresh interpreters in the first round of a run, forked ones in later rounds. Case names do not change."""
KINDS = (AUTO, FRESH, FORK)


def read(text: str) -> str:
    """Parse one of the kinds."""
    if text not in KINDS:
        raise argparse.ArgumentTypeError(f"expected {AUTO}, {FRESH} or {FORK}, got '{text}'")
    return text


def why_fresh(cell: Cell | Case, *, placed: bool) -> str:
    """Return the reason why workers of the cell are never forked, or an empty text."""
    from ipexperf.bench import registry  # now, not by every pytest run that declares the options

    if registry.devices.get(cell.device).accelerator:
        return f"the runtime of a device such as {cell.device} does not survive a fork"
    if placed:
        return "a worker is placed before it imports anything"
    return registry.modes.get(cell.mode).fresh


def plain(case: Case) -> Case:
    """Return the case with fresh workers, for cases that cannot be forked."""
    return case.without(KNOB)


def named(cell: Cell, kind: str, *, placed: bool) -> tuple[tuple[str, str], ...]:
    """Return the knob of a case whose workers are forked. It gives the case a series of its own."""
    return ((KNOB, FORK),) if kind == FORK and not why_fresh(cell, placed=placed) else ()
