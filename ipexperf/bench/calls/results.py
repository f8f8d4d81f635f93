"""Results of calls as sketches, which tell whether two processes got the same. Nothing is pickled.

Containers are opened by the methods of their kind: what a user's class has in place of these may raise or never end.
What is of no known kind is named by its type, and not compared.
"""

from __future__ import annotations

import array
import collections
import datetime as dt
import decimal
import enum
import fractions
import hashlib
import importlib.util
import itertools
import math
import pathlib
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from ipexperf.dtypes import DTYPES
from ipexperf.proof import sketches

LAZY = ("generator", "coroutine", "async_generator")
PLAIN: tuple[type, ...] = (type(None), bool, int, str, bytes, bytearray, range, decimal.Decimal, fractions.Fraction)
PLAIN += (dt.datetime, dt.date, dt.time, dt.timedelta, dt.timezone, pathlib.PurePath, uuid.UUID)
"""Types whose values are compared by their text."""
SHOWN = 60
"""Longest text of a value that is kept whole. Of a longer one a digest is."""
MOST = 40
"""From this many parts on, the rest is one digest, and sums of its numbers."""
VALUES = 50_000
"""The most parts that are looked at."""
NUMBERS = 2**27
"""The most numbers of a tensor: a sparse one may have any number."""
DEEP = 100
"""The most containers inside one another."""
BOUNDS = {name: row.bounds.fidelity for row in DTYPES.values() for name in row.operands if "float" in name}
BOUNDS |= {"complex64": BOUNDS["float32"], "float8_e4m3fn": 0.25, "float8_e5m2": 0.5}
"""Largest distance of numbers that are rounded more than float64's, relative to their size."""
Seen = tuple[str, Any, Sequence[tuple[str, Any]]]
"""What a value is; its numbers that are rounded, with their shape, if it has any; what it holds, each with a name."""


def sketch(result: Any) -> dict[str, Any]:
    """Return the sketch of a result: a part for each value and each container in it."""
    every_part = _parts("result", result, {})
    parts = []
    for at, text, numbers, unknown in itertools.islice(every_part, MOST):
        values, shape, bound = numbers or (None, (), 0.0)
        part = {"is": text} if values is None else sketches.numbers(values, shape, text, bound)
        parts.append({"at": at, **part, **({"unknown": unknown} if unknown else {})})
    digest, floats, reason = hashlib.sha256(), collections.defaultdict[float, list[Any]](list), ""
    for at, text, numbers, unknown in itertools.islice(every_part, VALUES):
        digest.update(f"{at} {text}\n".encode(errors="surrogatepass"))
        reason = reason or (unknown and f"has a part that {unknown}")
        if numbers and importlib.util.find_spec("numpy"):
            values = sketches.flat(numbers[0])
            floats[sketches.EXACT if values.dtype == "float64" else numbers[2]].append(values)
        elif numbers:
            reason = "has numbers, and without NumPy they are not compared"
    if next(every_part, None):
        reason = f"has more than {VALUES:,} values, and others are not compared"
    if len(parts) == MOST:
        parts.append({"at": "the rest", "is": digest.hexdigest()[:12], "unknown": reason})
    for bound, rows in floats.items():
        joined = sys.modules["numpy"].concatenate(rows)
        own = _listed(joined.tolist())[2] if bound == sketches.EXACT else bound
        part = sketches.numbers(joined, joined.shape, f"{len(joined)} numbers", own)
        parts.append({"at": f"the rest within {bound:g}", **part})
    return {"parts": parts, "weights": "", "processes": 1}


def _listed(values: list[float], *shape: int) -> tuple[Any, Sequence[int], float]:
    """Floats of Python's and their bound. They may be of float32, as a loss is, and are if that can hold them all."""
    finite = [value for value in values if math.isfinite(value)]
    bound = BOUNDS["float32"] if array.array("f", finite).tolist() == finite else sketches.EXACT
    return values if len(values) <= sketches.KEPT else sketches.flat(values), shape, bound


def _parts(at: str, value: Any, above: Mapping[int, str]) -> Iterator[tuple[str, str, Any, str]]:
    """The parts of a value: where, what it is, its numbers, and why it isn't compared. `above`: what it is inside."""
    if id(value) in above:
        yield at, f"{above[id(value)]} again", None, ""
        return
    name = type(value).__name__
    inner: Sequence[tuple[str, Any]] = ()
    text, numbers, unknown = name, None, ""
    try:
        if seen := _seen(value):
            text, numbers, inner = seen
        else:
            why = "whose body did not run" if name in LAZY else "which nothing compares with another"
            unknown = f"is a {name}, {why}"
    except Exception as error:  # noqa: BLE001 - whatever a user's class raises is said
        unknown = f"is a {name}, which cannot be read: {type(error).__name__}"
    if inner and len(above) == DEEP:
        unknown, inner = f"is a {name} inside {DEEP} others, and what it holds is not compared", ()
    yield at, _cut(text), numbers, unknown
    for part, held in inner:
        yield from _parts(at + part, held, {**above, id(value): at})


def _seen(value: Any) -> Seen | None:
    """What is known of a value. Only its own type is asked: a proxy's says that it is what it stands for."""
    return next(filter(None, (look(value, type(value)) for look in (_single, _numeric, _table, _container))), None)


def _single(value: Any, kind: type) -> Seen | None:
    if issubclass(kind, float):
        return "float", _listed([value.real]), ()
    if issubclass(kind, complex):
        return "complex", _listed([value.real, value.imag]), ()
    word = _word(value) if issubclass(kind, (*PLAIN, enum.Enum)) else ""
    return (word, None, ()) if word else None


def _numeric(value: Any, kind: type) -> Seen | None:
    """A tensor, or an array of NumPy's."""
    torch, numpy = map(sys.modules.get, ("torch", "numpy"))
    if torch and issubclass(kind, torch.Tensor):
        if value.numel() > NUMBERS:
            raise OverflowError
        value = value.detach().to_dense().cpu().resolve_conj().resolve_neg()
        floating = value.is_floating_point() or value.is_complex()
        value = value if floating else value.numpy()
    elif numpy and issubclass(kind, numpy.ndarray | numpy.generic) and not issubclass(kind, numpy.ma.MaskedArray):
        value = numpy.asarray(value)
        floating = value.dtype.kind in "fc"
    else:
        return None
    text = sketches.described(value)
    if floating:
        bound = BOUNDS.get(str(value.dtype).removeprefix("torch."), sketches.EXACT)
        return text, (sketches.flat(value), value.shape, bound), ()
    if value.dtype.names:
        return text, None, [(f"[{field!r}]", value[field]) for field in value.dtype.names]
    if value.dtype.kind in "OT":
        return _sequence(text, value.ravel().tolist())
    return f"{text} {value.tolist() if value.size <= sketches.KEPT else sketches.digest(value.tobytes())}", None, ()


def _table(value: Any, kind: type) -> Seen | None:
    pandas = sys.modules.get("pandas")
    if pandas and issubclass(kind, pandas.DataFrame):
        text, _, columns = _mapping(kind.__name__, list(value.items()))
        return text, None, [(".index", value.index), *columns]
    if pandas and issubclass(kind, pandas.Series):
        return kind.__name__, None, [(".index", value.index), (".values", value.to_numpy())]
    return (kind.__name__, None, [(".values", value.to_numpy())]) if pandas and issubclass(kind, pandas.Index) else None


def _container(value: Any, kind: type) -> Seen | None:
    name = kind.__name__
    for ordered in (list, tuple, collections.deque):
        if issubclass(kind, ordered):
            return _sequence(name, list(ordered.__iter__(value)))
    for unordered in (set, frozenset):
        if issubclass(kind, unordered):
            words = sorted(map(_word, unordered.__iter__(value)))
            return None if "" in words else (f"{name} of {', '.join(words)}", None, ())
    if issubclass(kind, Mapping):
        pairs = dict.items(value) if issubclass(kind, dict) else itertools.islice(value.items(), 2 * VALUES)
        return _mapping(name, sorted(pairs, key=lambda pair: _word(pair[0])))
    made = getattr(kind, "__attrs_attrs__", None)
    declared = fields(kind) if is_dataclass(kind) else made
    if declared is None:
        return None
    # Past whatever its class has in place of the usual way: one without a value must not be made up.
    return name, None, [(f".{field.name}", object.__getattribute__(value, field.name)) for field in declared]


def _mapping(name: str, pairs: Sequence[tuple[Any, Any]]) -> Seen:
    words = [_word(key) or type(key).__name__ for key, _ in pairs]
    text = f"{name} of {', '.join(words)}"
    if len(set(words)) < len(words):  # columns may share a name
        words = [f"{word}, {place}" for place, word in enumerate(words)]
    return text, None, [(f"[{_cut(word)}]", part) for word, (_, part) in zip(words, pairs, strict=True)]


def _sequence(name: str, items: list[Any]) -> Seen:
    kinds, name = set(map(type, items)), f"{name} of {len(items)}"
    if items and all(issubclass(kind, float) for kind in kinds):
        return f"{name} floats", _listed([item.real for item in items], len(items)), ()
    if len(items) > sketches.KEPT and kinds <= {type(None), bool, int, str, bytes}:
        return f"{name}: {sketches.digest(repr(items).encode(errors='surrogatepass'))}", None, ()
    return name, None, [(f"[{place}]", part) for place, part in enumerate(items)]


def _word(value: Any) -> str:
    """The text of a plain value, of a number or of several, by the methods of its kind. Empty for others."""
    kind = type(value)
    if issubclass(kind, enum.Enum):
        return f"{kind.__name__}.{value._name_}: {_word(value._value_)}"
    if issubclass(kind, tuple | frozenset):
        words = [_word(part) for part in value]
        words = words if issubclass(kind, tuple) else sorted(words)
        return "" if "" in words else f"{kind.__name__}({', '.join(words)})"
    bases = (base for base in (*PLAIN, float, complex) if issubclass(kind, base))
    return next((str(vars(base)["__repr__"](value)) for base in bases), "")


def _cut(text: str) -> str:
    """A text, or its beginning and digest if it is long."""
    content = text.encode(errors="surrogatepass")
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]}... {sketches.digest(content)}"
