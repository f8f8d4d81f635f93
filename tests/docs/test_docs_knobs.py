"""The page of the knobs names exactly those that there are."""

from __future__ import annotations

import re
from pathlib import Path

from ipexperf.plan import knobs

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "knobs.md"


def test_every_knob_is_on_its_page_and_no_other() -> None:
    """A knob that is added without its row, or a row whose knob is gone, fails here."""
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(knobs.everyone())
