"""Results of functions and answers of networks beside others: what is another one, by how much, and if that fails."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ipexperf.outcomes import has_numbers, row
from ipexperf.sentences import few, joined
from ipexperf.units import share
from ipexperf.verdict import SpeedVerdict, Verdict

Answers = Mapping[str, Any]
"""A sketch by `proof.sketches`."""
Part = Mapping[str, Any]
ROOT = "result"
AGREEING = 2
"""From this many processes on it is known that they return the same."""
NOISE = 32.0
"""A small number may be off by so many times what the large ones of its tensor are, because it may be a difference of
such numbers."""
FEW = 8.0
"""If one sum is off by more than so many times the others, a few numbers are."""
CANCELLED = 1e-15
"""By so much of its tensor's size it may be off in any case: this is rounding of float64."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How answers differ, in words, and whether that is more than the dtype of the case allows."""

    text: str = ""
    fails: bool = False
    compared: bool = True
    """False if the text says why it is not known."""


def read(document: Mapping[str, Any]) -> Answers:
    """A sketch of a file. Raise KeyError, TypeError or ValueError if it is damaged."""
    for part in document["parts"]:
        if not (part["at"] and part.get("bound", 0.0) < math.inf and len(_bytes(part)) % struct.calcsize("d") == 0):
            raise ValueError("a sketch of answers is damaged")
    return dict(document)


def common(sketches: Iterable[Answers | None]) -> Answers | None:
    """The answers of processes that ran the same. What these do not share cannot be compared with others."""
    known = [sketch for sketch in sketches if sketch]
    if len(known) < AGREEING:
        return next(iter(known), None)
    others = [{part["at"]: part for part in sketch["parts"]} for sketch in known[1:]]
    parts = [
        part
        if all(part["at"] in other and not _change(part, other[part["at"]], "").fails for other in others)
        else {"at": part["at"], "unknown": "is another one in each process"}
        for part in known[0]["parts"]
    ]
    return {**known[0], "parts": parts, "processes": len(known)}


def uncompared(*sides: Answers | None) -> str:
    """Which part cannot be compared and why, or an empty text."""
    unknown = (part for side in sides if side for part in side["parts"] if part.get("unknown"))
    return next((f"{'it' if part['at'] == ROOT else part['at']} {part['unknown']}" for part in unknown), "")


def difference(before: Answers | None, now: Answers | None, whose: str = "the baseline's") -> Difference:
    """Compare two sketches, part by part. An empty text if the answers are the same, or one side has none."""
    if not before or not now:
        return Difference()
    unlike = f"its answers are not compared with {whose}: "
    if before["weights"] != now["weights"]:
        return Difference(f"{unlike}its weights were trained another time", compared=False)
    others = {part["at"]: part for part in now["parts"]}
    changes = [_change(part, others[part["at"]], whose) for part in before["parts"] if part["at"] in others]
    failing = [change for change in changes if change.fails]
    shown = failing or [change for change in changes if change.text]
    if not shown:
        return Difference()
    texts = [change.text for change in shown]
    if failing and max(side.get("processes", AGREEING) for side in (before, now)) < AGREEING:
        return Difference(f"{unlike}they differ, and may in each process: more than one tells", compared=False)
    allowed = "" if failing else ", as its dtype allows"
    return Difference(f"its answers changed{allowed}: {few(texts, 1)}", fails=bool(failing))


def _change(before: Part, now: Part, whose: str) -> Difference:
    """How a part is another one."""
    at = "" if before["at"] == ROOT else f"{before['at']}: "
    if "is" not in before or "is" not in now:
        return Difference()
    if before["is"] != now["is"]:
        return Difference(f"{at}{before['is']} -> {now['is']}", fails=True)
    if before.get("odd") != now.get("odd"):
        return Difference(f"{at}other numbers are not finite", fails=True)
    for name in ("bound", "told"):
        if name in before and name in now:
            bound = min(before[name], now[name])
            apart = _of_sums(before, now, bound, whose) if "sums" in before else _of_values(before, now, bound)
            if apart:
                return Difference(apart if "values" in before else at + apart, fails=name == "bound")
    return Difference()


def _of_values(before: Part, now: Part, bound: float) -> str:
    """The number that is farthest beyond its bound, by name, or an empty text."""
    import numpy as np

    old, new = _doubles(before), _doubles(now)
    moved = [abs(b - a) for a, b in zip(old, new, strict=True)]
    known = [place for place, far in enumerate(moved) if math.isfinite(far)]
    size = _mean([old[place] for place in known])
    noise = NOISE * _mean([moved[place] for place in known if abs(old[place]) >= size])
    noise = max(min(noise, bound * size), CANCELLED * size)
    worst, text = 1.0, ""
    for place, (a, b, far) in enumerate(zip(old, new, moved, strict=True)):
        if a == b or (math.isnan(a) and math.isnan(b)):
            continue
        allowed = bound * max(abs(a), abs(b)) + (0.0 if abs(a) >= size else noise)
        excess = far / allowed if math.isfinite(far) and allowed else math.inf
        if excess > worst:
            shape = before["shape"]
            index = np.unravel_index(place * math.prod(shape) // len(old), shape)  # a complex number is two
            worst, at = excess, f"{before['at']}{list(map(int, index)) or ''}"
            beyond = "" if math.isinf(excess) else f" (bound {share(allowed / max(abs(a), abs(b)), 2)})"
            text = f"{'' if at == ROOT else f'{at}: '}{a:.12g} -> {b:.12g}{beyond}"
    return text


def _of_sums(before: Part, now: Part, bound: float, whose: str) -> str:
    """How far many numbers are from others: all, or a few of them, or the small ones. Empty within the bound."""
    (size, most, *old), (other, _, *new) = _doubles(before), _doubles(now)
    half, ratio = len(old) // 2, other / size if size else math.inf if other else 1.0
    moved = [b * ratio - a if b else a for a, b in zip(old[:half], new[:half], strict=True)]
    apart, worst = math.hypot(*moved), max(map(abs, moved))
    small = math.dist(old[half:], new[half:]) / math.sqrt(math.prod(before["shape"]))
    large = worst * size / most if most else 0.0
    within = f"(bound {share(bound, 2)})"
    if apart > bound:
        return f"{share(apart, 2)} from {whose} {within}"
    # Rounding is in all sums alike.
    if large > bound and worst > FEW * math.sqrt(max(apart**2 - worst**2, 0.0) / (half - 1)):
        return f"a few numbers are off by {share(large, 2)} of the largest {within}"
    return f"small numbers are {share(small, 2)} from {whose} {within}" if small > bound else ""


def _mean(values: Sequence[float]) -> float:
    """The root mean square."""
    return math.hypot(*values) / math.sqrt(len(values) or 1)


def _doubles(part: Part) -> list[float]:
    return [value for (value,) in struct.iter_unpack("<d", _bytes(part))]


def _bytes(part: Part) -> bytes:
    return base64.b64decode(part.get("sums") or part.get("values") or "")


def named(verdict: Verdict, change: Difference) -> Verdict:
    """The verdict that names other answers. If they fail, it is `invalid` unless it fails already.

    The verdict on speed stays beside it, so that a change that is wished can be accepted.
    """
    if not change.text or not has_numbers(verdict.outcome):
        return verdict
    if not change.fails or row(verdict.outcome).fails:
        return replace(verdict, reason=joined(verdict.reason, change.text))
    speed = verdict.speed or SpeedVerdict(verdict.outcome, verdict.reason)
    return replace(verdict, outcome="invalid", reason=change.text, speed=speed)
