"""What a run wants to be measured of a group. A fleet sends it to a host."""

from __future__ import annotations

from dataclasses import dataclass

from ipexperf.case import Case
from ipexperf.plan.groups import Group
from ipexperf.result import Measurement


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """A group to measure, and how."""

    group: Group
    launches: int
    twin: bool = False
    precision: float | None = None
    """Make more rounds, up to twice as many, while the interval of a ratio is wider than this."""
    before: tuple[tuple[Case, Measurement], ...] = ()
    """The measurements of an earlier pass: good launches are kept, and this pass is the last one."""
    numbers: tuple[tuple[Case, int], ...] = ()
    """The number of the first launch of each case, if earlier launches exist elsewhere."""
    fresh: bool = False
    """Fork no worker, because something is judged that only fresh processes tell."""
