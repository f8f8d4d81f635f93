"""The tables of evidence are those of the files, and every file holds what it claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipexperf.tools.evidence import records, tables

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / records.FOLDER).glob("*.json"))


def test_there_is_a_file() -> None:
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_claims_nothing_beyond_what_it_holds(path: Path) -> None:
    assert records.read(path).machine == path.stem


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.stem)
def test_a_page_has_the_tables_of_the_files(page: Path) -> None:
    """Run `ipexperf evidence --pages` if this fails."""
    text = (ROOT / page).read_text()
    assert text.count("<!-- evidence: ") == text.count("<!-- end of evidence -->") > 0
    assert tables.filled(text, tables.blocks(records.all_of(ROOT / records.FOLDER)), page) == text


def test_every_table_is_on_a_page() -> None:
    text = "".join((ROOT / page).read_text() for page in tables.PAGES)
    assert [name for name in tables.blocks([]) if f"<!-- evidence: {name} -->" not in text] == []
