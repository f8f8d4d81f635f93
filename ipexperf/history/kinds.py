"""What each column may hold. Values are checked as rows are read, because a history may come from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache, lru_cache
from math import isfinite
from types import FunctionType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from sqlalchemy import JSON, Boolean, Column, Dialect, Double, Integer, LargeBinary, TypeDecorator

from ipexperf.history.values import kind_of_evidence
from ipexperf.judge.bisection import Change
from ipexperf.judge.bisection import Outcome as Found
from ipexperf.result import Launch
from ipexperf.verdict import Level, SpeedVerdict, Structure

SHOWN = 80
"""Characters of a wrong value in the message."""
SHORT = 1000
"""A document of fewer characters is remembered while a query is read, so that it is checked once."""
_TEXTS, _ANY = dict[str, str], dict[str, Any]
_ROWS = [{"calls": int} | dict.fromkeys(("primitive?", "implementation?", "operator?", "node?"), str)]
_FINGERPRINT = {
    "version": int,
    "digest": str | None,
    "unstable": [str],
    "missing": _TEXTS,
    "unparsed?": [str],
    "times?": dict[str, list[float]],
    "spread?": dict[str, float],
    "seconds?": float,
    "structure?": dict.fromkeys(("primitives?", "operators?", "kernels?", "graph?"), _ROWS) | {"flops?": int | None},
    "beside?": dict.fromkeys(("memory?", "work?", "counts?", "python?"), _ANY | None) | {"batch?": ([_ANY], None)},
}
_PART = {"at": str, "shape?": [int]} | dict.fromkeys(("bound?", "told?"), float)
_PART |= dict.fromkeys(("is?", "values?", "sums?", "odd?", "unknown?"), str)
_ANSWERS = {"parts?": [_PART], "weights?": str, "processes?": int}
HOLDS: Mapping[str, Any] = {
    "environment.doc": {"machine_key": str, "hardware?": {"host?": str | None}, "software?": _ANY}
    | {"variables?": dict[str, str | None], "source?": _TEXTS | None, "lock?": str | None},
    "case.params": {"size?": int, "data?": str, "knobs?": _TEXTS},
    "run.meta": {"suite?": str, "command?": ([str], None), "git?": _ANY | None, "again?": _ANY}
    | {"settled?": {"line?": str}},
    "launch.doc": {f"{name}?": hint for name, hint in get_type_hints(Launch).items()}
    | {"started_at": str, "metrics": dict[str, float], "answers?": (_ANSWERS, None)}
    | dict.fromkeys(("fingerprint?", "against?"), (_FINGERPRINT, None)),
    "policy.doc": _ANY,
    "verdict.reason": {"text": str, "lo": float, "hi": float, "baseline": (kind_of_evidence, None)}
    | {"structure?": (Structure, None), "speed?": (SpeedVerdict, None), "level?": (Level, None)},
    "seat.turns": [int],
    "bisection.outcome": Found,
    "bisection.culprits": [Change],
    "bisection.suspects": [str],
    "bisection.ends": ({"ratio": float, "lo": float | None, "hi": float | None}, None),
    "bisection.ran": [str],
}
"""What documents and words hold, by their columns: a type hint, a dataclass by its fields, a list of one such, a tuple
of alternatives, a function that chooses one for a value, or the keys of a document; those with `?` may be missing."""
PLAIN = ((Boolean, bool | int), (Integer, int), (Double, float), (LargeBinary, bytes | memoryview), (object, str))
"""What all other columns hold, by their types."""


class Checked(TypeDecorator[Any]):
    """The type of a column that raises ValueError for a value of another kind as it is read."""

    impl: Any = JSON
    cache_ok = True

    def __init__(self, column: Column[Any]) -> None:
        super().__init__()
        self.impl = self.plain = column.type
        self.name = f"{column.table.name}.{column.name}"

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """None is read as it is: a column that always has a value has none in an outer join."""
        name, convert = self.name, super().result_processor(dialect, coltype)
        document = isinstance(self.plain, JSON)
        hint = next(hint for kind, hint in PLAIN if isinstance(self.plain, kind))
        hint = HOLDS[name] if document else HOLDS.get(name, datetime if name.endswith("_at") else hint)
        simple = hint if convert is None and hint in (int, str, float) else None
        correct: set[str] = set()

        def checked(value: Any) -> Any:
            # The quick ways first: a history has millions of numbers, and many rows of one case.
            if value is None or (value.__class__ is simple and (simple is not float or isfinite(value))):
                return value
            short = value if document and value.__class__ is str and len(value) < SHORT else ""
            try:
                decoded = convert(value) if document and convert else value
                fits_hint = short in correct or fits(decoded, hint)
            except (RecursionError, TypeError, ValueError):
                fits_hint = False
            if not fits_hint:
                raise ValueError(f"{name} is {value!r}"[:SHOWN])
            if short:
                correct.add(short)
            return decoded if document or convert is None else convert(value)

        return checked


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the kind that a hint of HOLDS says. Of a number None is what was not finite."""
    if value.__class__ is hint:
        return hint is not float or isfinite(value)
    if hint is datetime:
        return _is_moment(value)
    origin, parts = get_origin(hint), get_args(hint)
    if isinstance(hint, FunctionType):
        return isinstance(value, dict) and fits(value, hint(value))
    if isinstance(hint, tuple) or origin in (Union, UnionType):
        return any(fits(value, part) for part in parts or hint)
    if is_dataclass(hint):
        return fits(value, _keys(hint))  # type: ignore[arg-type]
    if isinstance(hint, dict):
        there = [key for key in hint if isinstance(value, dict) and (key[-1] != "?" or key[:-1] in value)]
        return isinstance(value, dict) and all(fits(value.get(key.rstrip("?")), hint[key]) for key in there)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(fits(part, parts[1]) for part in value.values())
    if isinstance(hint, list) or origin in (list, tuple):
        return isinstance(value, list) and all(fits(part, (parts or hint)[0]) for part in value)
    return (
        hint is Any or value is hint or value in parts or (hint is float and (value is None or value.__class__ is int))
    )


@lru_cache(maxsize=2**14)
def _is_moment(text: str) -> bool:
    return datetime.fromisoformat(text).tzinfo is not None


@cache
def _keys(record: Any) -> dict[str, Any]:
    """The document of a dataclass. What has a default may be missing: older versions did not write it."""
    hints = get_type_hints(record)
    return {f"{field.name}{'?' * (field.default is not MISSING)}": hints[field.name] for field in fields(record)}
