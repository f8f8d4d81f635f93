"""The tables of the documentation say what the files hold."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from evidence_records import BF16, FP32, USED, WRONG, evidence, proven

from ipexperf.errors import EvidenceError
from ipexperf.tools.evidence import tables

ELSEWHERE = {"cpu": "Other 1", "isa": ["avx2"], "cores": 2, "memory": 1, "accelerator": None}


def line(block: str, begin: str) -> list[str]:
    return next([cell.strip() for cell in one.split("|")[1:-1]] for one in block.splitlines() if one.startswith(begin))


def test_each_machine_is_a_column() -> None:
    """What it did not reach, what failed and what it emulates is said."""
    ipex = proven(dataclasses.replace(BF16, stack="ipex"), WRONG)
    emulated = evidence(proven(BF16, emulated=True), hardware=ELSEWHERE)
    made = tables.blocks([evidence(proven(BF16, USED), proven(FP32), ipex), emulated])
    assert line(made["modes"], "| mode")[2:] == ["Some 9000, AVX-512 BF16 (cpu)", "Other 1, AVX2 (cpu)"]
    cells = [row for row in made["modes"].splitlines() if "| bf16 |" in row and "emulated: stock" in row]
    assert len(cells) == 1
    assert "| stock; **failed**: ipex; not reached: new, old, plain, torchao |" in cells[0]
    assert line(made["instructions"], "| bf16 by AVX-512 BF16")[1:] == ["yes", "not reached"]
    assert line(made["machines"], "| Other 1")[1:3] == ["`cpu`", "python 3.11.7, torch 2.8.0"]
    assert "infer bf16 ipex: dtype: found float32, expected bfloat16" in made["problems"]


def test_without_a_file_each_table_says_so() -> None:
    assert set(tables.blocks([]).values()) == {"No machine yet.\n"}


def test_a_page_keeps_what_is_around_its_tables() -> None:
    """Filling it twice changes nothing."""
    page = "before\n<!-- evidence: modes -->\nold\n<!-- end of evidence -->\nafter\n"
    filled = tables.filled(page, {"modes": "new\n"}, Path("page.md"))
    assert filled == "before\n<!-- evidence: modes -->\n\nnew\n\n<!-- end of evidence -->\nafter\n"
    assert tables.filled(filled, {"modes": "new\n"}, Path("page.md")) == filled


def test_a_table_that_nobody_makes_is_an_error() -> None:
    with pytest.raises(EvidenceError, match=r"page.md: there is no table of evidence called moods: choose from modes"):
        tables.filled("<!-- evidence: moods -->\n<!-- end of evidence -->", {"modes": ""}, Path("page.md"))
