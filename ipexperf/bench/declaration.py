"""Check what extensions declare and answer, by the type hints of `api`: a wrong value would fail far from its file."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from ipexperf.bench.api import GRAPHS, Session
from ipexperf.bench.machine.placement import OPENMP
from ipexperf.errors import UsageError, WorkerError
from ipexperf.result import Check

NAME = re.compile(r"[A-Za-z0-9_.-]+")
CHOICES: Mapping[str, tuple[str, ...]] = {
    "graph": GRAPHS,
    "openmp": ("", *OPENMP),
    "artifact": ("", "script", "state", "program"),
    "quantisation": ("static", "dynamic"),
}
LOWEST: Mapping[str, int] = {"memory": 0, "items": 1, "processes": 1}
"""The smallest number, or value of a mapping, that these methods may return."""
ABOVE_ZERO = ("learning_rate", "rate")
SHOWN = 80
"""Characters of a wrong answer in the message."""
HINTS = functools.cache(get_type_hints)
"""Thousands of models may be declared, and each is held against the same hints."""
MAY_BE_ZERO = ("settles", "recipe_steps", "train_steps")
WORDS: Mapping[Any, str] = {
    str: "a text",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    tuple: "a tuple",
    Mapping: "a mapping",
    Callable: "a function",
    NoneType: "None",
    dict: "a dict",
    Check: "a Check of texts, whose ok is True or False",
}


def check(kind: str, base: type, name: Any, leaf: Any) -> None:
    """Raise UsageError for an attribute of `base` that this leaf lacks, or that has a value of another kind."""
    owner = f"the {kind}" if type(leaf) is base else type(leaf).__name__
    if name == "":
        raise UsageError(f'{owner} has no name: write name = "..." in it')
    if not isinstance(name, str) or not NAME.fullmatch(name) or name == "all":
        raise UsageError(f"{owner} has the name {name!r}, expected letters, digits, '_', '.' and '-'")
    _check_attributes(f"{owner} '{name}'", base, leaf)
    check_methods(base, leaf)


def check_session(session: Session) -> None:
    """Raise UsageError for what a session lacks, or takes or holds of another kind than `Session` says."""
    _check_attributes(type(session).__name__, Session, session)
    check_methods(Session, session)


def _check_attributes(owner: str, base: type, item: object) -> None:
    for attribute, hint in HINTS(base).items():
        value = getattr(item, attribute, None)
        if attribute != "name" and (expected := _expected(attribute, value, hint)):
            raise UsageError(f"{owner}: {attribute} is {value!r}, expected {expected}")


def check_methods(base: type, item: object) -> None:
    """Raise UsageError for a method that does not take the arguments that `base` gives it."""
    for name, declared in vars(base).items():
        if name.startswith("__") or not inspect.isfunction(declared) or getattr(type(item), name, None) is declared:
            continue
        _, *parameters = inspect.signature(declared).parameters.values()
        positional = [parameter.name for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
        keywords = {parameter.name: None for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
        own = getattr(item, name)
        owner = f"{type(item).__name__}.{name}"
        if not callable(own):
            raise UsageError(f"{owner} is {own!r}, expected a method")
        try:
            inspect.signature(own).bind(*positional, **keywords)
        except TypeError:
            words = ", ".join(["self", *positional, *keywords])
            raise UsageError(f"{owner} does not take the arguments ({words})") from None


def answer(base: type, item: object, method: str, *arguments: Any) -> Any:
    """Call a method of a leaf or session. Raise WorkerError if what it returns is not what `base` says."""
    value, hint = getattr(item, method)(*arguments), HINTS(getattr(base, method))["return"]
    expected = "" if _fits(value, hint) else _words(hint)
    if not expected and method in LOWEST:
        numbers = value.values() if isinstance(value, dict) else [value]
        expected = f"at least {LOWEST[method]}" if any(number < LOWEST[method] for number in numbers) else ""
    if not expected:
        return value
    shown = repr(value)
    shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
    raise WorkerError("error", f"{whose(item, method)} returned {shown}, expected {expected}")


def whose(item: object, method: str) -> str:
    """Return a method of a leaf or session with its class, file and line, for messages."""
    function = inspect.unwrap(getattr(type(item), method))
    return f"{type(item).__name__}.{method}{place(function)}"


def place(function: Any) -> str:
    """Return the file and line of a function, for messages. Empty for what has no Python source."""
    code = getattr(function, "__code__", None)
    return f" ({Path(code.co_filename).name}, line {code.co_firstlineno})" if code else ""


def _words(hint: Any) -> str:
    """What a type hint asks for."""
    if len(kinds := _kinds(hint)) > 1:
        return " or ".join(map(_words, kinds))
    origin, parts = get_origin(hint), get_args(hint)
    if origin is list:
        return f"a list, each {_words(parts[0])}"
    if origin in (dict, Mapping) and parts[1] is not Any:
        return f"a mapping from texts, each to {_words(parts[1])}"
    if origin is tuple and Ellipsis in parts:
        return f"a tuple, each {_words(parts[0])}"
    if origin is tuple:
        return f"a tuple of {' and '.join(map(_words, parts))}"
    return WORDS.get(origin or hint, getattr(hint, "__name__", str(hint)))


def _expected(attribute: str, value: Any, hint: Any) -> str:
    """What an attribute should have been, or an empty text."""
    if not _fits(value, hint):
        return _words(hint)
    if attribute in CHOICES and value not in CHOICES[attribute]:
        return "one of " + ", ".join(map(repr, CHOICES[attribute]))
    if type(value) is int and value < 1 and attribute not in MAY_BE_ZERO:
        return "at least 1"
    return "more than 0" if attribute in ABOVE_ZERO and value <= 0 else ""


def _kinds(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _fits(value: Any, hint: Any) -> bool:
    if hint is Any or (type(value) is hint and hint in (str, bool, int)):
        return True
    if len(kinds := _kinds(hint)) > 1:
        return any(_fits(value, kind) for kind in kinds)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is tuple and Ellipsis not in parts:
        return isinstance(value, tuple) and len(value) == len(parts) and all(map(_fits, value, parts))
    if origin in (tuple, list):
        return isinstance(value, origin) and all(_fits(item, parts[0]) for item in value)
    if origin in (dict, Mapping):
        return isinstance(value, origin) and all(
            _fits(key, parts[0]) and _fits(item, parts[1]) for key, item in value.items()
        )
    if origin is Callable:
        return callable(value)
    if hint in (int, float):
        return isinstance(value, (int, hint)) and not isinstance(value, bool) and math.isfinite(value)
    if hint is Check:
        return isinstance(value, Check) and all(
            isinstance(getattr(value, name), kind) for name, kind in HINTS(Check).items()
        )
    return isinstance(value, hint)
