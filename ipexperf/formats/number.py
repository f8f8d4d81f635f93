"""A number that a program told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
"""What the units of times are in seconds. A time is told in seconds."""


@dataclass(frozen=True, slots=True)
class Number:
    """A value with its unit, and whether more of it is better: None where its format does not say that."""

    value: float
    unit: str = ""
    higher: bool | None = None

    @classmethod
    def time(cls, value: object, unit: str = "s") -> Number:
        """A time. Raises KeyError for an unknown unit."""
        return cls(float(value) * SECONDS[unit], "s", higher=False)  # type: ignore[arg-type] # raises for others


@dataclass(frozen=True, slots=True)
class File:
    """A file that a program wrote, or what it printed."""

    name: str
    text: str


Told: TypeAlias = Iterator[tuple[str, Number]]
"""Numbers with their names. It raises ValueError with a sentence, or what reading another file's content raises."""
Reader: TypeAlias = Callable[[Sequence[File], str], Told]
"""Reads the numbers of files. The text says which, in a way of the format's own; it may be empty."""
