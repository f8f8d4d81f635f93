"""Answers of a network beside those of its baseline, or of the other arm: how far they are apart, and if that fails."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ipexperf.dtypes import DTYPES, PLAIN
from ipexperf.outcomes import has_numbers, row
from ipexperf.result import SpeedVerdict, Verdict

Answers = Mapping[str, Any]
"""A sketch by `bench.evidence.answers`."""
SIZE = 64 * 4
"""Bytes of a sketch."""
SAME = DTYPES[PLAIN].bounds.fidelity
"""Sketches are of float64: a distance below this is rounding, whatever the dtype of the case."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How answers differ, in words, and whether that is more than the dtype of the case allows."""

    text: str = ""
    fails: bool = False


def read(document: Mapping[str, Any]) -> Answers:
    """A sketch of a file. Raise KeyError, TypeError or ValueError if it is damaged."""
    numbers = {name: float(document[name]) for name in ("norm", "bound")}
    texts = {name: str(document[name]) for name in ("sums", "weights")}
    if len(base64.b64decode(texts["sums"], validate=True)) != SIZE or not all(map(math.isfinite, numbers.values())):
        raise ValueError("a sketch of answers is damaged")
    return {**numbers, **texts, "shapes": [str(shape) for shape in document["shapes"]]}


def common(found: Iterable[Answers | None]) -> Answers | None:
    """The answers of processes that ran the same. None if these differ: then they cannot be compared with others."""
    there = [one for one in found if one]
    return None if any(difference(there[0], other).fails for other in there[1:]) else next(iter(there), None)


def difference(before: Answers | None, now: Answers | None, whose: str = "the baseline's") -> Difference:
    """Compare two sketches. An empty text if the answers are the same, or one side has none."""
    if not before or not now:
        return Difference()
    if before["weights"] != now["weights"]:
        return Difference(f"its answers are not compared with {whose}: its weights were trained another time")
    if before["shapes"] != now["shapes"]:
        shapes = [", ".join(side["shapes"]) for side in (before, now)]
        return Difference(f"its answers changed: {' -> '.join(shapes)}", fails=True)
    apart, bound = distance(before, now), max(before["bound"], now["bound"])
    if apart <= SAME:
        return Difference()
    if apart <= bound:
        return Difference(f"its answers are {_percent(apart)} from {whose}, which its dtype allows")
    return Difference(f"its answers changed: {_percent(apart)} from {whose} (bound {_percent(bound)})", fails=True)


def distance(before: Answers, now: Answers) -> float:
    """The estimated distance of the answers, relative to the size of those before."""
    squares = sum((b - a) ** 2 for a, b in zip(_sums(before), _sums(now), strict=True))
    size = before["norm"]
    return math.sqrt(squares) / size if size else math.inf if squares else 0.0


def _sums(answers: Answers) -> list[float]:
    data = base64.b64decode(answers["sums"])
    return [answers["norm"] * value for (value,) in struct.iter_unpack("<f", data)]


def _percent(share: float) -> str:
    return f"{float(f'{100 * share:.2g}'):g}%"


def named(verdict: Verdict, found: Difference) -> Verdict:
    """The verdict that names other answers. If they fail, it is `invalid` unless it fails already.

    The verdict on speed stays beside it, so that a change that is wished can be accepted.
    """
    if not found.text or not has_numbers(verdict.outcome):
        return verdict
    if not found.fails or row(verdict.outcome).fails:
        return replace(verdict, reason=f"{verdict.reason}; {found.text}")
    speed = verdict.speed or SpeedVerdict(verdict.outcome, verdict.reason)
    return replace(verdict, outcome="invalid", reason=f"{found.text}; {verdict.reason}", speed=speed)
