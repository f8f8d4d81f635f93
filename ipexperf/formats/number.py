"""A number that a program told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Number:
    """A value with its unit, and whether more of it is better: None where its format does not say that."""

    value: float
    unit: str = ""
    higher: bool | None = None


@dataclass(frozen=True, slots=True)
class File:
    """A file that a program wrote, or what it printed."""

    path: Path
    text: str


Told: TypeAlias = Iterator[tuple[str, Number]]
"""Numbers with their names. It raises ValueError with a sentence, or what reading another file's content raises."""
Reader: TypeAlias = Callable[[Sequence[File], str], Told]
"""Reads the numbers of files. The text says which, in a way of the format's own; it may be empty."""
