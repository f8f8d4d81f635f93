"""Records from JSON, and their schemas, by the types of their fields.

What comes from a file is data, and nothing is unpickled.
"""

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


class Schemas:
    """JSON Schemas (2020-12) of what `asdict` makes of records. `kinds` are types in place of others.

    An object may have more than its schema says, because later versions add to it.
    """

    def __init__(self, number: str | list[str] = "number", **kinds: Any) -> None:
        self.types = {str: "string", bool: "boolean", int: "integer", float: number, type(None): "null"}
        self.kinds = kinds
        self.definitions: dict[str, Any] = {}
        """Those of records, by the names of their classes."""

    def of(self, kind: Any) -> dict[str, Any]:
        """The schema of a value of this type."""
        kind = self.kinds.get(getattr(kind, "__name__", ""), kind)
        origin, parts = typing.get_origin(kind), typing.get_args(kind)
        if kind is Any:
            return {}
        if origin in (types.UnionType, typing.Union):
            return {"anyOf": [self.of(part) for part in parts]}
        if origin is typing.Literal:
            return {"enum": [*parts]}
        if origin is tuple and parts[1:] == (Ellipsis,):
            return {"type": "array", "items": self.of(parts[0])}
        if origin is tuple:
            return {"type": "array", "prefixItems": [self.of(part) for part in parts], "items": False}
        if origin is not None:
            return {"type": "object", "additionalProperties": self.of(parts[1])}
        if not dataclasses.is_dataclass(kind):
            return {"type": self.types[kind]}
        name = typing.cast("type", kind).__name__
        if name not in self.definitions:
            self.definitions[name] = {}  # it may be a part of itself
            self.definitions[name] = schema(self.fields(kind), kind)
        return {"$ref": f"#/$defs/{name}"}

    def fields(self, kind: Any) -> dict[str, Any]:
        """The schemas of the fields of a record."""
        names = [field.name for field in dataclasses.fields(kind) if not field.name.startswith("_")]
        return {name: self.of(_hints(kind)[name]) for name in names}


def schema(fields: Mapping[str, Any], about: Any, *optional: str) -> dict[str, Any]:
    """The schema of an object with these fields, described by a class."""
    required = [name for name in fields if name not in optional]
    said = str(about.__doc__).partition("\n")[0]
    return {"type": "object", "description": said, "properties": dict(fields), "required": required}
