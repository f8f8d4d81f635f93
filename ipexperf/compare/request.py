"""A run's request for the rounds of a group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    before: Mapping[Case, Measurement] = field(default_factory=dict)
    """The measurements of an earlier pass: good launches are kept, and this pass is the last one."""
    numbers: Mapping[Case, int] = field(default_factory=dict)
    """The number of the first launch of each case, if earlier launches exist elsewhere."""
    fresh: bool = False
    """Fork no worker, because something is judged that only fresh processes tell."""
    changed: tuple[str, ...] = ()
    """The files that changed since the baselines were accepted, without those that were seen to be read."""
