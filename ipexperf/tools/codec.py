"""Records as JSON, by the types of their fields: what travels between hosts is data, and nothing is unpickled."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def plain(value: Any) -> Any:
    """The value as JSON has it: records and mappings become objects, tuples and sets become arrays."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(plain(item) for item in value)
    if isinstance(value, Collection) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def record(kind: type[T], document: Any) -> T:
    """The record that `plain` made this document of. Raises ValueError if it does not fit."""
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
    if origin is not None:
        return _read_many(origin, parts, document)
    if dataclasses.is_dataclass(kind):
        hints = _hints(typing.cast("type", kind))
        return typing.cast("Any", kind)(**{name: _read(hints[name], value) for name, value in document.items()})
    if kind is Path:
        return Path(document)
    if kind is float and isinstance(document, int):
        return float(document)
    if not isinstance(document, kind):
        raise TypeError(f"{document!r} is no {kind.__name__}")
    return document


def _read_many(origin: Any, parts: tuple[Any, ...], document: Any) -> Any:
    """A tuple, a set or a mapping."""
    if issubclass(origin, Mapping):
        return {key: _read(parts[1], value) for key, value in document.items()}
    if origin is frozenset:
        return frozenset(_read(parts[0], value) for value in document)
    kinds = [parts[0]] * len(document) if parts[1:] == (Ellipsis,) else parts
    return tuple(_read(kind, value) for kind, value in zip(kinds, document, strict=True))


def _read_union(parts: tuple[Any, ...], document: Any) -> Any:
    """The first part of a union that the document fits."""
    problem = "nothing"
    for part in parts:
        if part is type(None):
            continue
        try:
            return _read(part, document)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            problem = str(error)
    raise ValueError(problem)
