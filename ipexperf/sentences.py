"""Lists of names in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def few(texts: Sequence[str], most: int = 3, *, between: str = ", ", rest: str = "more") -> str:
    """The first of these texts, and how many more there are: 'a, b and 3 more'."""
    more = f" and {len(texts) - most} {rest}" if len(texts) > most else ""
    return f"{between.join(texts[:most])}{more}"


def joined(*texts: str) -> str:
    """Those of these texts that say something, in one sentence."""
    return "; ".join(dict.fromkeys(filter(None, texts)))


def together(texts: Sequence[str]) -> str:
    """All of these texts: 'a, b and c'."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))
