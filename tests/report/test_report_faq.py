"""What a run prints is explained: on the page of questions, and by `ipexperf help`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

import ipexperf
from ipexperf import cli
from ipexperf.outcomes import OUTCOMES, Outcome, is_fine
from ipexperf.report import faq
from ipexperf.result import METRICS


def test_every_outcome_that_is_not_fine_has_a_section() -> None:
    assert {name for name in get_args(Outcome) if not is_fine(name)} <= set(faq.sections())


def test_every_word_is_one_that_a_run_prints() -> None:
    """An outcome, a metric, a check of a proof, or a word of the summary."""
    sources = "".join(path.read_text() for path in Path(ipexperf.__file__).parent.rglob("*.py"))
    checks = set(re.findall(r'Check\(\s*"(\w+)"', sources))
    spoken = {"contended", "deselected", "waiting", "untrusted", "answers", "files"}
    assert set(faq.sections()) - set(OUTCOMES) - set(METRICS) - checks == spoken


@pytest.mark.parametrize("word", faq.sections())
def test_every_section_ends_with_the_page_that_helps(word: str) -> None:
    assert re.search(r"\(docs/[\w/-]+\.md\)\.$", faq.sections()[word])


def test_help_explains_a_word_and_lists_the_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["help", "peak_memory"]) == 0
    assert "`held_memory` is what is still allocated" in capsys.readouterr().out
    assert cli.main(["help"]) == 0
    assert "regressed, inconclusive, " in capsys.readouterr().out
    assert cli.main(["help", "inconclusve"]) == cli.USAGE_ERROR
    assert "did you mean inconclusive?" in capsys.readouterr().err


def test_a_block_names_only_what_is_explained() -> None:
    assert faq.commands(["invalid", "streams", "threads", "invalid"]) == "ipexperf help invalid, ipexperf help threads"
