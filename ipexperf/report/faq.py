"""The words that a run prints, explained: the sections of `docs/faq.md`, which is linked beside this file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path


def sections() -> dict[str, str]:
    """The text of each word."""
    _, *parts = Path(__file__).with_name("faq.md").read_text(encoding="utf-8").split("\n## ")
    texts = {}
    for part in parts:
        words, _, text = part.partition("\n\n")
        # Links as people without a browser can follow them.
        plain = re.sub(r"\[([^]]*)\]\(([^)#]*)[^)]*\)", r"\1 (docs/\2)", " ".join(text.split()))
        texts.update(dict.fromkeys(words.split(", "), plain))
    return texts


def commands(words: Iterable[str]) -> str:
    """The commands that explain those of these words that have a section."""
    known = sections()
    return ", ".join(f"ipexperf help {word}" for word in dict.fromkeys(words) if word in known)
