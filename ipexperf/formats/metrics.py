"""`--metrics`: which numbers a program tells of itself, and where."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ipexperf.errors import UsageError
from ipexperf.formats.tools import FORMATS, PRINTED, File, Number

DIRECTIONS = {"lower": False, "higher": True}
OUT = "{out}"
"""In a program's words, the place that it is to write its numbers to."""
LARGEST = 2**26
"""Most bytes of a file, or of what a program prints, that are read."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """A value of `--metrics`: '[lower:|higher:]FORMAT[@FILE][:WHAT]'."""

    text: str
    format: str
    file: str = ""
    what: str = ""
    higher: bool | None = None

    @classmethod
    def parse(cls, text: str, words: Sequence[str]) -> Metrics:
        """Parse a value for a program of these words."""
        direction, colon, rest = text.partition(":")
        higher = DIRECTIONS.get(direction) if colon else None
        head, _, what = (text if higher is None else rest).partition(":")
        name, _, file = head.partition("@")
        if name not in FORMATS:
            raise UsageError(
                f"--metrics '{text}': expected [lower:|higher:]FORMAT[@FILE][:WHAT] with one of the formats "
                f"{', '.join(FORMATS)}"
            )
        has_out = any(OUT in word for word in words)
        return cls(text, name, file or (OUT if has_out and name not in PRINTED else ""), what, higher)

    def read(self, out: Path, folder: Path, printed: str) -> dict[str, Number]:
        """The numbers of a run that was told to write to `out`, ran in `folder` and printed this.

        Raises ValueError with a sentence.
        """
        try:
            numbers: dict[str, Number] = {}
            for name, number in FORMATS[self.format](self._files(out, folder, printed), self.what):
                self._check(name, number, numbers)
                numbers[name] = number if number.higher is not None else replace(number, higher=self.higher)
        except (KeyError, TypeError, AttributeError, IndexError, csv.Error, StopIteration) as error:
            raise ValueError(
                f"--metrics {self.text}: {self._where()} is not of this format: {type(error).__name__}: {error}"
            ) from None
        except json.JSONDecodeError as error:
            raise ValueError(f"--metrics {self.text}: {self._where()} is no whole JSON: {error}") from None
        except (OSError, ValueError, UsageError) as error:
            raise ValueError(f"--metrics {self.text}: {error}") from None
        if not numbers:
            raise ValueError(f"--metrics {self.text}: it told no number in {self._where()}")
        return numbers

    def _check(self, name: str, number: Number, others: Mapping[str, Number]) -> None:
        if name in others:
            raise ValueError(f"two numbers are called '{name}'")
        if number.higher is None and self.higher is None:
            either = " or ".join(f"{direction}:{self.text}" for direction in DIRECTIONS)
            raise ValueError(f"nothing says whether more of '{name}' is better: write {either}")

    def _where(self) -> str:
        return self.file or "what it prints"

    def _files(self, out: Path, folder: Path, printed: str) -> list[File]:
        if not self.file:
            (path := out.with_name("printed")).write_text(printed, encoding="utf-8")
            return [File(path, printed)]
        path = folder / self.file.replace(OUT, str(out))
        paths = sorted(path.glob("*.csv")) or sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not paths or not paths[0].exists():
            raise ValueError(f"it wrote no {self.file}")
        if large := next((file for file in paths if file.stat().st_size > LARGEST), None):
            raise ValueError(f"{large.name} has more than {LARGEST // 2**20} MiB")
        return [File(file, file.read_text(encoding="utf-8", errors="replace")) for file in paths]


def all_of(wanted: Sequence[Metrics], out: Path, folder: Path, printed: str) -> Mapping[str, Number]:
    """The numbers that all of these find. Raises ValueError if two have one name."""
    numbers: dict[str, Number] = {}
    for metrics in wanted:
        told = metrics.read(out, folder, printed)
        if twice := next((name for name in told if name in numbers), None):
            raise ValueError(f"--metrics {metrics.text}: another --metrics has a '{twice}' too")
        numbers |= told
    return numbers


def unusable(number: Number | None) -> str:
    """Why a number has no ratio, or an empty text."""
    if number is None:
        return "is not told"
    return "" if 0 < number.value < math.inf else f"is {number.value:g}, not above 0"
