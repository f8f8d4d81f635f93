"""Lines of a summary: plain text, as wide as the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from ipexperf.sentences import few

NARROWEST, WIDEST = 80, 120
"""Columns. No table fits into less, and no sentence is easy to read in more."""
NAMED = 4
"""Most cases to name in one line. The rest are counted."""
REASON = 200
"""Longest reason in a cell of a table. An error of torch may fill a screen."""
BUSY = "measured on a busy machine, so the numbers do not count"


class Page:
    """How wide lines may be, in columns. The widest, unless they go to a terminal."""

    width = WIDEST

    @classmethod
    def fit(cls, columns: int) -> None:
        """Make lines for a terminal of so many columns."""
        cls.width = min(max(columns, NARROWEST), WIDEST)


def shortened(reason: str) -> str:
    """The beginning of a reason, if it is too long for a table."""
    return textwrap.shorten(reason, REASON, placeholder=" ...") if len(reason) > REASON else reason


def wrapped(text: str, indent: str = "") -> list[str]:
    """Wrap a text. All lines but the first are indented by four more. Paths are never cut, because people copy them."""
    return broken(text, Page.width, indent, f"{indent}    ")


def broken(text: str, width: int, first: str = "", others: str = "") -> list[str]:
    """Break a text into lines with these indents, but no word, and no number from its sign of percent."""
    wide = textwrap.TextWrapper(width, first, others, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in wide.wrap(text.replace(" %", "\xa0%"))]


def labelled(label: str, text: str) -> list[str]:
    """Wrap a text that begins with a label."""
    return wrapped(f"{label}: {text}")


def listed(label: str, meaning: str, names: Sequence[str]) -> list[str]:
    """What happened to so many cases, and to which. Nothing if it happened to none."""
    return labelled(f"{label} ({len(names)})", f"{meaning}: {named(names)}") if names else []


def by_meaning(label: str, pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A line for each meaning, with the names of those that it holds for, from pairs of both."""
    names: dict[str, list[str]] = {}
    for meaning, name in pairs:
        names.setdefault(meaning, []).append(name)
    for meaning, alike in names.items():
        yield from listed(label, meaning, alike)


def named(names: Sequence[str], limit: int = NAMED) -> str:
    """The first of these names without duplicates, and how many more there are."""
    return few(list(dict.fromkeys(names)), limit)
