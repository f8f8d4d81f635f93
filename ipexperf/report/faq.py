"""The words that a run prints, explained by the pages of `docs/`, which are linked beside this file."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
WRITTEN = re.compile(r"(?:`|(?<!\*)\*)([^`*\n]+)(?:`|\*(?!\*))")
"""A word as code or in italics."""
LINK = re.compile(r"\[([^]]*)\]\(([^)#]*)[^)]*\)")


def sections() -> dict[str, str]:
    """What to do about each word that has a section on the page of questions."""
    _, *parts = (HERE / "faq.md").read_text(encoding="utf-8").split("\n## ")
    texts = {}
    for part in parts:
        words, _, text = part.partition("\n\n")
        texts.update(dict.fromkeys(words.split(", "), _plain(text)))
    return texts


@functools.cache
def explained() -> dict[str, str]:
    """The text of every word, as `called` names it: a section of its own, else a row of a table, else a paragraph."""
    rows: dict[str, str] = {}
    paragraphs: dict[str, str] = {}
    for page in (HERE / "architecture.md", *sorted((HERE / "reference").glob("*.md"))):
        for head, text in _parts(page.read_text(encoding="utf-8")):
            for written, told in ((head, rows), (text, paragraphs)):
                for word in WRITTEN.findall(written):
                    told.setdefault(called(word), f"{_plain(text)} (page {page.stem})")
    return {**paragraphs, **rows, **{called(word): text for word, text in sections().items()}}


def called(word: str) -> str:
    """A word as it is looked up."""
    return word.lower().replace("_", " ").strip(":-")


def _parts(page: str) -> Iterator[tuple[str, str]]:
    """The rows of a page's tables, or of its glossary, each with its first cell; and its paragraphs and items."""
    _, _, glossary = page.partition("\n## Words\n")
    text = re.sub(r"```.*?```", "", glossary.partition("\n## ")[0] or page, flags=re.DOTALL)
    for block in re.split(r"\n\n|\n(?=[-|#])", text):
        head, _, rest = block.strip("| \n").partition(" | ")
        if block.startswith("|"):
            yield f"*{head.replace(', ', '*, *')}*" if glossary else head, rest.replace(" | ", "; ")
        else:
            yield "", block.lstrip("- ")


def _plain(text: str) -> str:
    """A text of a page in one line, with the names of pages for links: who installed us has no checkout."""
    plain = " ".join(text.split())
    return LINK.sub(lambda link: f"{link[1]} (page {Path(link[2]).stem})" if link[2] else link[1], plain)


def commands(words: Iterable[str]) -> str:
    """The commands that explain those of these words that have a section."""
    known = sections()
    return ", ".join(f"ipexperf help {word}" for word in dict.fromkeys(words) if word in known)
