"""`--perf-yardstick`: the cases that can take turns with a yardstick, and the knob that marks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipexperf.bench.api import Cell
    from ipexperf.case import Case
    from ipexperf.plan.options import Options

KNOB = "yardstick"
"""The name of the knob of a case that takes turns with a yardstick. It gives the case a series of its own."""
ON = "on"


def why_not(cell: Cell | Case) -> str:
    """Return the reason why a case cannot take turns with a yardstick, or an empty text."""
    from ipexperf.bench import registry  # now, not by every pytest run that declares the options

    mode, device = registry.modes.get(cell.mode), registry.devices.get(cell.device)
    if mode.cold:
        return f"{cell.mode} is timed once per process, and takes no turns"
    if mode.batch is not None or mode.processes(cell) > 1:
        return f"the steps of {cell.mode} run in several processes"
    return "" if device.yardstick(cell) else f"it has no work for {cell.device}"


def named(cell: Cell, options: Options) -> tuple[tuple[str, str], ...]:
    """Return the knob of a case that takes turns with a yardstick."""
    return ((KNOB, ON),) if options.yardstick and not why_not(cell) else ()
