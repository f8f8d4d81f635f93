"""The words that a run prints, explained by the pages of `docs/`, to which this folder has a link."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

DOCS = Path(__file__).parent / "docs"
WRITTEN = re.compile(r"(?:`|(?<!\*)\*)([^`*\n]+)(?:`|\*(?!\*))")
"""A word as code or in italics."""
LINK = re.compile(r"\[([^]]*)\]\(([^)#]*)[^)]*\)")


def sections() -> dict[str, str]:
    """What to do about each word that has a section on the page of questions."""
    _, *parts = (DOCS / "faq.md").read_text(encoding="utf-8").split("\n## ")
    split = (part.partition("\n\n") for part in parts)
    return {word: _plain(text) for words, _, text in split for word in words.split(", ")}


@functools.cache
def explained() -> dict[str, str]:
    """The text of every word, as `called` names it: a section of its own, else a row of a table, else a paragraph."""
    rows: dict[str, str] = {}
    paragraphs: dict[str, str] = {}
    for page in (DOCS / "architecture.md", *sorted((DOCS / "reference").glob("*.md"))):
        for head, text in _parts(page.read_text(encoding="utf-8")):
            for written, told in ((head, rows), (text, paragraphs)):
                for word in WRITTEN.findall(written):
                    told.setdefault(called(word), f"{_plain(text)} (page {page.stem})")
    return {**paragraphs, **rows, **{called(word): text for word, text in sections().items()}}


@functools.cache
def pages() -> dict[str, Path]:
    """The pages that are installed, by the names that texts give them."""
    return {called(page.stem): page for part in ("", "reference/", "how-to/") for page in DOCS.glob(f"{part}[a-z]*.md")}


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
    """A text of a page in one line, with the names of installed pages for links: `ipexperf help PAGE` says where."""
    names = {f"{path.stem}.md": f" (page {path.stem})" for path in pages().values()}
    return LINK.sub(lambda link: link[1] + names.get(Path(link[2]).name, ""), " ".join(text.split()))


def commands(words: Iterable[str]) -> str:
    """The commands that explain those of these words that have a section."""
    known = sections()
    return ", ".join(f"ipexperf help {word}" for word in dict.fromkeys(words) if word in known)
