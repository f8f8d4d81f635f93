"""A ratio with its interval: how many times as large a value is as another, and every way to write that."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from ipexperf.units import TWICE, digits, percent, times

WIDE = 1e3
"""An interval whose ends differ by a larger factor tells nothing, and is not shown."""
SINGLE = "a single launch has no interval"
TOO_FEW = "too few launches to tell"
"""Said in place of an interval that is wider than WIDE."""
APART = "*"
"""Marks a ratio of launches that did not take turns."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as large a value is as another, with its interval. One side with a single launch has none."""

    value: float
    lo: float | None = None
    hi: float | None = None
    rounds: int = 0
    """The number of rounds that it is over, if it is over rounds."""
    apart: bool = False
    """Whether it is over launches that did not take turns."""

    @property
    def differs(self) -> bool:
        """Whether the interval excludes 1. Without an interval, False."""
        return self.lo is not None and self.hi is not None and not self.lo <= 1 <= self.hi

    @property
    def inverse(self) -> Ratio:
        """That of the other to the one."""
        return Ratio(1 / self.value, self.hi and 1 / self.hi, self.lo and 1 / self.lo, self.rounds, self.apart)

    @property
    def narrow(self) -> bool:
        """Whether it has an interval that tells something."""
        return self.lo is not None and self.hi is not None and self.hi / self.lo < WIDE

    @property
    def reach(self) -> float:
        """How far the interval reaches above the ratio, as a share of it. Without an interval, 0."""
        return 0.0 if self.hi is None else self.hi / self.value - 1

    def __str__(self) -> str:
        """As a change: '+12.3 % (+4.0 to +21.0)', '4.4 times (3.1 to 6.3)'."""
        shown = percent(self.value)
        return shown if self.lo is None else f"{shown} ({self.range.removesuffix(shown[shown.index(' ') :])})"

    @property
    def range(self) -> str:
        """The interval of the change: '+4.0 to +21.0 %', '3.1 to 6.3 times' as its value, or why there is none."""
        if self.lo is None or self.hi is None or not self.narrow:
            return self.bounds
        if self.value >= TWICE:
            return f"{times(self.lo)} to {times(self.hi)} times"
        low, high = (round(100 * (end - 1), 1) + 0.0 for end in (self.lo, self.hi))  # -0.0 becomes 0.0
        return f"{low:+.1f} to {high:+.1f} %"

    @property
    def times(self) -> str:
        """Without its interval: '3.37'."""
        return f"{digits(self.value)}{APART if self.apart else ''}"

    @property
    def bounds(self) -> str:
        """The interval: '3.31 to 3.43', or why there is none."""
        return self._bounds(digits)

    @property
    def cell(self) -> str:
        """With the interval, if it has one: '3.37 (3.31 to 3.43)'."""
        return self.times if self.lo is None else f"{self.times} ({self.bounds})"

    @property
    def brief(self) -> str:
        """The same in short: '3.37 +-2 %', rounded up."""
        return f"{self.times} +-{math.ceil(100 * self.reach)} %" if self.narrow else self.times

    @property
    def precise(self) -> str:
        """With three decimals, for ratios near 1: '1.003 (0.991 to 1.015)'."""
        return f"{self.value:.3f} ({self.precise_bounds})"

    @property
    def precise_bounds(self) -> str:
        """The interval with three decimals, or why there is none."""
        return self._bounds("{:.3f}".format)

    def sentence(self, after: str, if_alike: str) -> str:
        """'1.74 times (1.61 to 1.88)', and whether no difference is seen."""
        text = f"{self.times} {after} ({self.bounds})"
        return text if self.differs or self.lo is None else f"{text}, {if_alike}"

    def _bounds(self, written: Any) -> str:
        if self.lo is None:
            return SINGLE
        return f"{written(self.lo)} to {written(self.hi)}" if self.narrow else TOO_FEW


HINT = "Ratio | None"
"""The type of a field that documents and tables have as three numbers."""


def flat(record: Any) -> dict[str, Any]:
    """The fields of a record as a document, in which a ratio is three numbers: its own name, `lo` and `hi`."""
    document: dict[str, Any] = {}
    for field, value in zip(fields(record), asdict(record).values(), strict=True):
        ratio = field.type == HINT
        document |= numbers(getattr(record, field.name), field.name) if ratio else {field.name: value}
    return document


def numbers(ratio: Ratio | None, name: str = "ratio") -> dict[str, float | None]:
    """The numbers of a ratio, as documents and the database have them."""
    values = (ratio.value, ratio.lo, ratio.hi) if ratio else (None, None, None)
    return dict(zip((name, "lo", "hi"), values, strict=True))


def of_numbers(document: Mapping[str, Any]) -> Ratio | None:
    """The ratio that has these numbers, if there is one."""
    value = document.get("ratio")
    return None if value is None else Ratio(value, document.get("lo"), document.get("hi"))
