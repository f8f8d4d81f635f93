"""The workflows that are ready to copy ask for options and commands that there are."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ipexperf import cli
from ipexperf.plan import options

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "docs" / "ci").iterdir())
THEIRS = {"--junitxml", "-q"}
"""The options of pytest itself."""


def commands(text: str, program: str) -> list[list[str]]:
    """The command lines that start a program, up to what a shell does with them."""
    found = re.findall(rf"\.venv/bin/{program} ([^\n]*)", text)
    return [shlex.split(re.split(r" (?:>|\|\|)", line)[0]) for line in found]


def unknown(words: list[str]) -> list[str]:
    """The options that nobody declares."""
    known = {flag for option in options.OPTIONS for flag in (option.flag, option.short)} | THEIRS
    return [word for word in words if word.startswith("-") and word.split("=")[0] not in known]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_workflow_asks_for_what_there_is(path: Path) -> None:
    """Each measures, draws its report, and keeps its history beyond the job."""
    text = path.read_text()
    measured = commands(text, "pytest")
    assert measured
    for words in measured:
        assert unknown(words) == []
        assert any(word.startswith("--perf-report=") for word in words)
    for words in commands(text, "ipexperf"):
        cli._parser().parse_args(words)
    assert "IPEXPERF_DB" in text
    assert set(re.findall(r"IPEXPERF_(\w+)", text)) <= {one.variable[9:] for one in options.OPTIONS}


def test_an_option_that_is_gone_would_be_seen() -> None:
    """The check above knows a misspelt option from a right one."""
    assert unknown(["suites/", "--perf-prest", "nightly", "--perf-db=x", "-q"]) == ["--perf-prest"]


def test_every_workflow_is_on_its_page() -> None:
    """And the page names no other."""
    page = (ROOT / "docs" / "reference" / "report.md").read_text()
    assert set(re.findall(r"\]\(\.\./ci/([\w.-]+)\)", page)) == {path.name for path in FILES}
