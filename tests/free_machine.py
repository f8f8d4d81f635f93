"""A machine that is ours alone, or never, whatever else runs on it, and a clock that a test moves."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from math import inf

from ipexperf.conduct.forking import FRESH, Forking
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


class Budget:
    """A conductor whose budget lasts for so many looks at it."""

    def __init__(self, looks: int = 99) -> None:
        self._left = iter([False] * looks)

    def spent(self) -> bool:
        return next(self._left, True)

    @contextmanager
    def forking(self, *_: object) -> Iterator[Forking]:
        yield FRESH
