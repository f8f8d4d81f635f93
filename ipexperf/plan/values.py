"""Strict parsers for the values of options."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TypeVar


def words(text: str) -> tuple[str, ...]:
    """Parse a comma list."""
    parts = tuple(word.strip() for word in text.split(",") if word.strip())
    if not parts:
        raise argparse.ArgumentTypeError("expected a comma list of names, got nothing")
    return parts


BASELINE = "baseline"
LOCKS = (f"{BASELINE}:", "run:", "lock:", "shipped:", "nightly:")
"""The prefixes of a lock's name. The word `baseline` alone names one too."""


REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9][A-Za-z0-9.!+_-]*)")


def is_lock(word: str) -> bool:
    """Return True if a word names a lock."""
    return word == BASELINE or (word.startswith(LOCKS) and not word.endswith(":"))


def is_requirement(word: str) -> bool:
    """Return True if a word names a version of a package, which takes the place of the one here: `numpy==2.1`."""
    return REQUIREMENT.fullmatch(word) is not None


LARGEST = 2**31 - 1
"""The largest whole number of an option: torch and SQLite do not take larger ones everywhere."""


def whole(least: int) -> Callable[[str], int]:
    """Return a parser of whole numbers that are at least this large."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, got '{text}'")
        if number > LARGEST:
            raise argparse.ArgumentTypeError(f"expected a whole number of at most {LARGEST}, got '{text}'")
        return number

    return read


positive, index = whole(1), whole(0)


def seconds(text: str) -> float:
    """Parse a positive number of seconds."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds over 0, got '{text}'")
    return number


def fraction(text: str) -> float:
    """Parse a fraction between 0 and 1, or a percentage: '0.05' or '5%'."""
    number = text.strip().removesuffix("%")
    try:
        value = float(number) / (100 if "%" in text else 1)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"expected a fraction between 0 and 1, such as 0.05 or 5%, got '{text}'")
    return value


def rate(text: str) -> float:
    """Parse the rate of false alarms: a fraction below one half."""
    value = fraction(text)
    if value >= 0.5:
        raise argparse.ArgumentTypeError(f"expected a rate below 0.5, got '{text}'")
    return value


Word = TypeVar("Word", bound=str)


def one_of(*choices: Word) -> Callable[[str], Word]:
    """Return a parser that accepts only these words."""
    words = dict(zip(choices, choices, strict=True))

    def read(text: str) -> Word:
        if text not in words:
            from ipexperf.bench.registry import nearest

            hint = nearest(text, choices)
            raise argparse.ArgumentTypeError(f"expected one of {', '.join(choices)}, got '{text}'{hint}")
        return words[text]

    return read


def words_of(*choices: str) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of a comma list that accepts only these words."""
    read = one_of(*choices)
    return lambda text: tuple(map(read, words(text)))


def settings(text: str) -> tuple[tuple[str, str], ...]:
    """Parse a comma list of NAME=VALUE."""
    pairs = []
    for word in words(text):
        name, equals, value = (part.strip() for part in word.partition("="))
        if not (name and equals and value):
            raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got '{word}'")
        pairs.append((name, value))
    return tuple(pairs)


def flag(text: str) -> bool:
    """Parse a yes or no from an ini file or a variable. Not `bool(text)`: bool("False") is True."""
    values = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if text.lower() not in values:
        raise argparse.ArgumentTypeError(f"expected yes or no, got '{text}'")
    return values[text.lower()]
