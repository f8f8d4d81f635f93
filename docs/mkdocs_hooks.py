"""Hooks of mkdocs: the site has the order of docs/README.md, and links that leave docs/ lead to the repository."""

import posixpath
import re
from pathlib import Path

ENTRY = re.compile(r"^(?:- |\| )\[([^\]]+)\]\(([^)#]+\.md)\)", re.MULTILINE)
LINK = re.compile(r"(\]\()([^)\s#:]+)([^)\s]*\))")


def on_config(config):
    """Take the table of the page and its sections, whose titles are bold, as those of the site."""
    text = Path(config.docs_dir, "README.md").read_text(encoding="utf-8")
    table, *sections = re.split(r"^\*\*([^*]+)\*\*$", text, flags=re.MULTILINE)
    config.nav = [{"Home": "README.md"}, *({title: page} for title, page in ENTRY.findall(table))]
    for name, part in zip(sections[::2], sections[1::2], strict=True):
        config.nav.append({name: [{title: page} for title, page in ENTRY.findall(part)]})
    return config


def on_page_markdown(markdown, page, config, files):
    """Make links that leave docs/ addresses of files in the repository."""

    def address(match):
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), match[2]))
        if target.startswith("docs/"):
            return match[0]
        return f"{match[1]}{config.extra['repository']}/blob/main/{target}{match[3]}"

    return LINK.sub(address, markdown)
