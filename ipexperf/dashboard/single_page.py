"""Pages that are one file of HTML: each contains the dashboard's style, and loads nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
STYLE = HERE / "assets" / "look.css"


def render(template: Path, **content: Any) -> str:
    """Fill a template with this content and, as `style`, the dashboard's style. Content is escaped."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),  # single.html, which these pages extend
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    page = environment.from_string(template.read_text(encoding="utf-8"))
    return page.render(style=STYLE.read_text(encoding="utf-8"), **content)
