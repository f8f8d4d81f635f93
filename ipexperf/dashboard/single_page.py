"""Pages that are one file of HTML: each contains the dashboard's style, and loads nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2

HERE = Path(__file__).parent
STYLE = HERE / "assets" / "look.css"


def environment(*, lstrip_blocks: bool = False) -> jinja2.Environment:
    """The templates. What is filled in is escaped, in pages and in the JSON inside them."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=lstrip_blocks,
    )


def render(template: Path, **content: Any) -> str:
    """Fill a template with this content and, as `style`, the dashboard's style."""
    page = environment().from_string(template.read_text(encoding="utf-8"))
    return page.render(style=STYLE.read_text(encoding="utf-8"), **content)
