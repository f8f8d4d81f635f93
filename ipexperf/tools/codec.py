"""Records from JSON, by the types of their fields: what comes from a file is data, and nothing is unpickled."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def record(kind: type[T], document: Any) -> T:
    """The record whose fields, as by `asdict`, are this document. Raises ValueError if it does not fit."""
    try:
        return typing.cast("T", _read(kind, document))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a {kind.__name__}: {error}") from None


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read(kind: Any, document: Any) -> Any:
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or (document is None and type(None) in parts):
        return document
    if origin in (types.UnionType, typing.Union):
        return _read_union(parts, document)
    if origin is typing.Literal:
        if document not in parts:
            raise ValueError(f"{document!r} is none of {', '.join(map(repr, parts))}")
        return document
    if origin is tuple:
        kinds = [parts[0]] * len(document) if parts[1:] == (Ellipsis,) else parts
        return tuple(_read(kind, value) for kind, value in zip(kinds, document, strict=True))
    if origin is not None and issubclass(origin, Mapping):
        return {key: _read(parts[1], value) for key, value in document.items()}
    if dataclasses.is_dataclass(kind):
        hints = _hints(typing.cast("type", kind))
        return typing.cast("Any", kind)(**{name: _read(hints[name], value) for name, value in document.items()})
    if kind is float and isinstance(document, int):
        return float(document)
    if not isinstance(document, kind):
        raise TypeError(f"{document!r} is no {kind.__name__}")
    return document


def _read_union(parts: tuple[Any, ...], document: Any) -> Any:
    """The first part of a union that the document fits."""
    for part in parts:
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
            return _read(part, document)
    raise ValueError(f"{document!r} is none of {', '.join(map(str, parts))}")
