"""A machine that is ours alone, or never, whatever else runs on it, and a clock that a test moves."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf

from ipexperf.judge.policy import GatePolicy

FREE = GatePolicy(**{limit.name: inf for limit in fields(GatePolicy) if limit.name != "name"})
"""A gate that lets everything pass."""
BUSY = GatePolicy(others=-inf)
"""A gate that lets nothing pass: any share of other processes is too large."""


@dataclass
class Clock:
    """A clock that stands still until a test moves it."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now
