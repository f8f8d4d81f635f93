"""A run that draws its report at its end, and tells a CI system what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from plugin_suite import Suite


def test_a_run_writes_its_report(suite: Suite) -> None:
    """The pages are of the run that just ended, which is in the history as finished."""
    result = suite.run("tiny", "--perf-report=site")
    assert result.ret == 0
    page = (suite.path / "site" / "index.html").read_text()
    assert "tiny-fake-fp32-spin-plain" in page
    assert "is finished" in page
    result.stdout.fnmatch_lines(["*site/index.html    the same, drawn"])


def test_a_folder_that_is_not_ours_ends_the_run_before_it_measures(suite: Suite) -> None:
    """One sentence, exit code 4, and nothing is recorded or lost."""
    (suite.path / "site").mkdir()
    (suite.path / "site" / "thesis.tex").write_text("precious")
    result = suite.run("tiny", "--perf-report=site")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*site holds thesis.tex, which is no part of a report*"])
    assert not (suite.path / "ipexperf.db").exists()
    assert (suite.path / "site" / "thesis.tex").read_text() == "precious"


def test_a_report_of_what_is_not_recorded_is_refused(suite: Suite) -> None:
    """The two contradict each other."""
    result = suite.run("tiny", "--perf-report=site", "--perf-no-record")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--perf-report draws what is recorded: leave --perf-no-record away*"])


def test_a_report_that_cannot_be_written_fails_the_run_and_loses_nothing(suite: Suite) -> None:
    """Somebody puts a file there while the run measures."""
    text = "import pathlib\ndef test_it(perf):\n    perf()\n"
    text += "    pathlib.Path('site').mkdir()\n    pathlib.Path('site/mine').write_text('precious')\n"
    (suite.path / "test_suite.py").write_text(text)
    result = suite.run("tiny", "--perf-report=site")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["THE REPORT IS NOT WRITTEN: *site holds mine*"])
    assert suite.statuses() == ["finished"]
    assert (suite.path / "site" / "mine").read_text() == "precious"


@pytest.mark.parametrize("on_github", [True, False])
def test_github_gets_a_summary_and_annotations(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, *, on_github: bool
) -> None:
    """The summary is appended where there is a file for it; lines are written only in a job."""
    summary = suite.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_ACTIONS", "true" if on_github else "")
    result = suite.run("tiny,segfault")
    assert result.ret == 1
    told = summary.read_text()
    assert told.startswith("## ipexperf: 1 failed, 1 no_baseline\n")
    assert "| `tiny-fake-fp32-spin-plain` |" in told
    annotations = [line for line in result.outlines if line.startswith("::")]
    assert [line.split(" (batch")[0] for line in annotations] == (
        ["::error title=failed%3A segfault-fake-fp32-spin-plain"] if on_github else []
    )


def test_a_run_of_other_tests_tells_github_nothing(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing was measured there is nothing to say."""
    summary = suite.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    (suite.path / "test_suite.py").write_text("def test_theirs():\n    pass\n")
    assert suite.raw().ret == 0
    assert not summary.exists()
