"""Parse and check the replies of workers. A malformed one ends the worker, and its launch is recorded as crashed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeAlias

from ipexperf.result import LAUNCH_OUTCOMES, NOT_BY_WORKERS, Check

Shape: TypeAlias = "Callable[[Any], bool]"
GREETING = "greeting"
"""The name of the message that a worker sends when it has started."""
OUTCOMES = frozenset(LAUNCH_OUTCOMES) - frozenset(NOT_BY_WORKERS)
"""The outcomes that a worker may report. `crashed` is that of a rank which died."""
SHOWN = 80
"""Characters of a malformed reply in the message."""


class MalformedError(ValueError):
    """A line that is no reply of the protocol. The message says why."""


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _table(value: Any) -> bool:
    return isinstance(value, dict)


def _table_or_none(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_number, value.values()))


def _list_of(shape: Shape) -> Shape:
    return lambda value: isinstance(value, list) and all(map(shape, value))


def _sample(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(map(_number, value))


def _outcome(value: Any) -> bool:
    return _text(value) and value in OUTCOMES


def _check(value: Any) -> bool:
    names = {field.name for field in fields(Check)}
    return isinstance(value, dict) and set(value) == names and _flag(value["ok"]) and _text(value["name"])


FIELDS: Mapping[str, Mapping[str, Shape]] = {
    GREETING: {"pid": _whole, "python": _text},
    "prepare": {"prepare_time": _number, "items": _number, "cold": _flag},
    "environment": {"machine_key": _text, "hardware": _table, "software": _table, "variables": _table},
    "warm": {"first_step": _number, "warm_time": _number, "steady": _number, "block": _whole},
    "sample": {"samples": _list_of(_sample), "block": _whole},
    "replay": {"samples": _list_of(_sample), "seconds": _number},
    "memory": {"peak_memory": _number},
    "serve": {
        "begin": _number,
        "end": _number,
        "latencies": _list_of(_number),
        "cpu": _number,
        "delay": _number,
    },
    "proof": {"checks": _list_of(_check)},
    "metrics": {"metrics": _numbers, "notes": _list_of(_text), "emulated": _flag},
    "fingerprint": {"fingerprint": _table_or_none},
    "accuracy": {"metrics": _numbers, "checks": _list_of(_check)},
    "ceilings": {"ceilings": _table},
    "pulse": {"seconds": _numbers},
    "footprint": dict.fromkeys(("parameters", "flops", "weights", "examples", "passing", "kept"), _number),
}
"""The required fields of the reply to each request. A reply may have more."""
OPTIONAL: Mapping[str, Mapping[str, Shape]] = {
    "warm": {"energy_seconds": _number, "no_energy": _text, "room": _number},
    "sample": {"joules": _number},
    "accuracy": {"answers": _table_or_none, "notes": _list_of(_text)},
}
"""Optional fields, whose type is checked too."""
FIGURES = ("begin", "prepare", "memory")
"""The requests whose replies have optional figures, which must be numbers."""
OTHER: Mapping[str, tuple[str, ...]] = {"prepare": ("cold",)}


def parse(line: bytes, request: str) -> dict[str, Any]:
    """The reply in this line, or a message of progress. Raise MalformedError if it is neither."""
    try:
        reply = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"{_shown(line)} is no JSON ({error})") from None
    if not isinstance(reply, dict):
        raise MalformedError(f"{_shown(line)} is no JSON object")
    if "say" in reply:
        return _checked(reply, {"say": _text}, line)
    if reply.get("ok") is False:
        return _checked(reply, {"outcome": _outcome, "reason": _text}, line)
    if reply.get("ok") is not True:
        raise MalformedError(f"{_shown(line)} does not say whether all is ok")
    _checked(reply, FIELDS.get(request, {}), line)
    optional = OPTIONAL.get(request, {})
    _checked(reply, {name: optional[name] for name in optional if name in reply}, line)
    if request in FIGURES:
        figures = {name: _number for name in reply if name not in ("ok", *OTHER.get(request, ()))}
        _checked(reply, figures, line)
    return reply


def _checked(reply: dict[str, Any], shapes: Mapping[str, Shape], line: bytes) -> dict[str, Any]:
    for name, fits in shapes.items():
        if name not in reply:
            raise MalformedError(f"{_shown(line)} has no {name}")
        if not fits(reply[name]):
            raise MalformedError(f"{_shown(line)} has a wrong {name}")
    return reply


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")


def _shown(line: bytes) -> str:
    text = line.decode(errors="replace").strip()
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
