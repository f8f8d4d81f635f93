"""Hold the Chinese pages against the English ones, section by section.

python tests/translations.py                                  say what must be mended; end with 1 if anything must
python tests/translations.py --accept README.md#what-it-runs  record that both languages say the same in this section

Below each heading of a Chinese page, a comment names its English section and the digest of the text that was
translated: `<!-- en: what-it-runs 0123456789ab -->`. Once the English text changes, the digests differ.
"""

from __future__ import annotations

import argparse
import hashlib
import posixpath
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "README.zh-CN.md", "docs/tutorial.md": "docs/tutorial.zh-CN.md"}
"""Each English page with its translation."""

HEADING = re.compile(r"^(#{1,6}) +(.*?) *$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
ORIGIN = re.compile(r"^<!-- en: ([\w-]+) ([0-9a-f]{12}) -->$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")
FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
COMMENT = re.compile(r"\s*(?<!\S)# .*$")


class TranslationError(Exception):
    """A page that cannot be read as sections, or a section that there is not."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, with all text up to the next one."""

    level: int
    title: str
    body: str

    @property
    def anchor(self) -> str:
        """The name by which a link reaches the heading, as GitHub makes it."""
        return anchor(self.title)

    @property
    def digest(self) -> str:
        """The digest of heading and text. Where lines break does not count."""
        words = " ".join(f"{'#' * self.level} {self.title}\n{self.body}".split())
        return hashlib.sha256(words.encode()).hexdigest()[:12]

    @property
    def blocks(self) -> list[str]:
        """The fenced blocks. Comments may be translated, so each is a bare `#` here."""
        return [
            "\n".join(COMMENT.sub(" #", line) for line in block.splitlines()) for block in FENCED.findall(self.body)
        ]

    @property
    def prose(self) -> str:
        """The text without its fenced blocks and comments."""
        return ORIGIN.sub("", FENCED.sub("", self.body))

    @property
    def names(self) -> set[str]:
        """What the prose has in code font: options, modes, verdicts."""
        return {" ".join(name.split()) for name in CODE.findall(self.prose)}

    @property
    def links(self) -> set[str]:
        """The targets of the links."""
        return set(LINK.findall(self.prose))

    @property
    def figures(self) -> set[str]:
        """The numbers of the prose, without those in code font and in links."""
        return set(FIGURE.findall(CODE.sub("", LINK.sub("]", self.prose))))


@dataclass(frozen=True, slots=True)
class Translation:
    """A Chinese section, and the English one that it was made of."""

    section: Section
    origin: str
    digest: str


def anchor(title: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", LINK.sub("", title).lower()).replace(" ", "-")


def sections(text: str) -> list[Section]:
    """Cut a page into its sections. A line in a fenced block is no heading."""
    outline = FENCED.sub(lambda block: re.sub(r"[^\n]", "x", block.group()), text)
    heads = list(HEADING.finditer(outline))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    result = [
        Section(len(head[1]), text[head.start(2) : head.end(2)], text[head.end() : end].strip())
        for head, end in zip(heads, ends, strict=True)
    ]
    refuse_duplicates([section.anchor for section in result], "has the heading")
    return result


def refuse_duplicates(names: list[str], what: str) -> None:
    """Raise TranslationError if two sections of a page have one name: nobody could say which is meant."""
    for name in names:
        if names.count(name) > 1:
            raise TranslationError(f"more than one section {what} `{name}`: change all but one")


def translations(text: str) -> list[Translation]:
    """The sections of a Chinese page. Raise TranslationError if one does not name its English section."""
    result = []
    for section in sections(text):
        match = ORIGIN.match(section.body)
        if not match:
            raise TranslationError(
                f'"{section.title}" does not say which English section it translates: '
                "add the line `<!-- en: ANCHOR 000000000000 -->` below the heading"
            )
        result.append(Translation(section, match[1], match[2]))
    refuse_duplicates([translation.origin for translation in result], "translates")
    return result


def bars(english: str, chinese: str) -> tuple[str, str]:
    """The first line of either page, which leads to the other."""
    return (
        f"English | [简体中文]({posixpath.basename(chinese)})",
        f"[English]({posixpath.basename(english)}) | 简体中文",
    )


def chinese_target(target: str, page: str) -> str:
    """Where the Chinese page links to, if the English one links to `target`: the Chinese page, where there is one."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
    return target.removesuffix(".md") + ".zh-CN.md" if path in PAGES else target


def differences(page: str, english: Section, chinese: Section) -> Iterator[str]:
    """Yield in what a Chinese section differs from the English one, where a translation must not."""
    if english.level != chinese.level:
        yield "the heading has another level"
    for number, (expected, actual) in enumerate(zip(english.blocks, chinese.blocks, strict=False), 1):
        if expected != actual:
            # Both end with a fence, so they differ before the shorter one is over.
            lines = zip(expected.splitlines(), actual.splitlines(), strict=False)
            first = next(line for line, other in lines if line != other)
            yield f"code block {number} differs, first where the English one has `{first}`"
    if len(english.blocks) != len(chinese.blocks):
        yield f"it has {len(chinese.blocks)} code blocks instead of {len(english.blocks)}"
    parts = [
        ("link", {chinese_target(target, page) for target in english.links}, chinese.links),
        ("name in code font", english.names, chinese.names),
        ("figure", english.figures, chinese.figures),
    ]
    for kind, theirs, ours in parts:
        if theirs - ours:
            yield f"it lacks the {kind} {', '.join(sorted(theirs - ours))}"
        if ours - theirs:
            yield f"it has the {kind} {', '.join(sorted(ours - theirs))}, which the English section does not have"


def compare(page: str, english: dict[str, Section], chinese: dict[str, Translation]) -> Iterator[str]:
    """Yield a sentence for each section that is extra, missing, outdated or different in the Chinese page."""
    target = PAGES[page]
    for name in (name for name in chinese if name not in english):
        yield (
            f'{target}: "{chinese[name].section.title}" translates `{name}`, which {page} does not have: '
            "remove the section, or name the right one in its comment."
        )
    if chinese.keys() == english.keys() and list(chinese) != list(english):
        yield f"{target}: the sections come in another order than those of {page}."
    for name, section in english.items():
        where = f'{page}, section "{section.title}"'
        if name not in chinese:
            yield (
                f"{where}: {target} lacks it: translate it there, with the line "
                f"`<!-- en: {name} {section.digest} -->` below the heading."
            )
            continue
        if chinese[name].digest != section.digest:
            yield (
                f"{where}: the English text changed since it was translated: read it, mend {target}, "
                f"then run `python tests/translations.py --accept {page}#{name}`."
            )
        for difference in differences(page, section, chinese[name].section):
            yield f"{where}: {target} does not match it: {difference}."


def findings(page: str, english: str, chinese: str) -> Iterator[str]:
    """Yield a sentence for whatever must be mended before the Chinese page says what the English one does."""
    target = PAGES[page]
    for path, text, bar in zip((page, target), (english, chinese), bars(page, target), strict=True):
        if text.split("\n", 1)[0] != bar:
            yield f"{path}: the first line must be `{bar}`."
    path = page
    try:
        originals = {section.anchor: section for section in sections(english)}
        path = target
        copies = {translation.origin: translation for translation in translations(chinese)}
    except TranslationError as error:
        yield f"{path}: {error}."
    else:
        yield from compare(page, originals, copies)


def accept(english: str, chinese: str, name: str) -> str:
    """The Chinese page, with the digest that an English section has now."""
    section = {each.anchor: each for each in sections(english)}.get(name)
    if section is None:
        raise TranslationError(f"there is no English section `{name}`")
    copies = {translation.origin: translation for translation in translations(chinese)}
    if name not in copies:
        raise TranslationError(f"no Chinese section translates `{name}`")
    return chinese.replace(f"<!-- en: {name} {copies[name].digest} -->", f"<!-- en: {name} {section.digest} -->")


def read(root: Path, page: str) -> tuple[str, str]:
    """An English page and its translation."""
    return (root / page).read_text(encoding="utf-8"), (root / PAGES[page]).read_text(encoding="utf-8")


def main(words: list[str] | None = None, root: Path = ROOT) -> int:
    """Say what must be mended, or accept sections. Return the exit status."""
    parser = argparse.ArgumentParser(description="Hold the Chinese pages against the English ones.")
    parser.add_argument(
        "--accept",
        action="append",
        default=[],
        metavar="PAGE#SECTION",
        help="record that the Chinese section says what the English one does now",
    )
    for section in parser.parse_args(words).accept:
        page, _, name = section.partition("#")
        if page not in PAGES:
            parser.error(f"no page `{page}` is translated; those that are: {', '.join(PAGES)}")
        try:
            text = accept(*read(root, page), name)
        except TranslationError as error:
            parser.error(f"{section}: {error}")
        (root / PAGES[page]).write_text(text, encoding="utf-8")
    sentences = [sentence for page in PAGES for sentence in findings(page, *read(root, page))]
    print("\n".join(sentences) or "the Chinese pages say what the English ones do")
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
