"""A page of markdown as its sections and links."""

import re

HEADING = re.compile(r"^#{1,6} +(.*?) *$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchor(title: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", LINK.sub("", title).lower()).replace(" ", "-")


def sections(text: str) -> dict[str, str]:
    """The text below each heading. A line in a fenced block is no heading."""
    outline = FENCED.sub(lambda block: re.sub(r"[^\n]", "x", block.group()), text)
    heads = list(HEADING.finditer(outline))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {
        text[head.start(1) : head.end(1)]: text[head.end() : end].strip() for head, end in zip(heads, ends, strict=True)
    }
