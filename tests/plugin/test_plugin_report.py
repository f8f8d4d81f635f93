"""A run that draws its report at its end, and tells a CI system what came of it."""

import json

import pytest
from plugin_suite import Suite


def test_a_report_that_cannot_be_written_fails_the_run_and_loses_nothing(suite: Suite) -> None:
    """Somebody puts a file there while the run measures."""
    text = "import pathlib\nimport pytest\n\n\n@pytest.mark.perf\ndef test_it(perf):\n    perf()\n"
    text += "    pathlib.Path('site').mkdir()\n    pathlib.Path('site/mine').write_text('precious')\n"
    (suite.path / "test_suite.py").write_text(text)
    result = suite.run("tiny", "--perf-report=site")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["THE REPORT IS NOT WRITTEN: *site holds mine*"])
    assert suite.statuses() == ["finished"]
    assert (suite.path / "site" / "mine").read_text() == "precious"


def test_a_run_writes_its_report_and_tells_github(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages are of the run that just ended, which is in the history as finished."""
    summary = suite.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = suite.run("tiny,segfault", "--perf-report=site")
    assert result.ret == 1
    page = (suite.path / "site" / "index.html").read_text()
    assert "tiny-fake-fp32-spin-plain" in page
    assert "is finished" in page
    result.stdout.fnmatch_lines(["*the same, drawn*", "*site/index.html"])
    told = summary.read_text()
    assert told.startswith("## ipexperf: 1 failed, 1 no_baseline\n")
    assert "| `tiny-fake-fp32-spin-plain` |" in told
    annotations = [line for line in result.outlines if line.startswith("::")]
    assert [line.split(" (batch")[0] for line in annotations] == [
        "::error title=failed%3A segfault-fake-fp32-spin-plain"
    ]


THEIRS = """
def test_theirs(benchmark):
    benchmark(lambda: None)
"""
TABLE = "Name (time in "


def test_the_table_of_pytest_benchmark_comes_only_when_asked_for(suite: Suite) -> None:
    """Our summary says it all; what pytest-benchmark writes to files is as it was."""
    result = suite.run("tiny", "--benchmark-json=bench.json", "--benchmark-autosave")
    assert result.ret == 0
    assert TABLE not in result.stdout.str()
    assert [one["name"] for one in json.loads((suite.path / "bench.json").read_text())["benchmarks"]]
    assert len(list((suite.path / ".benchmarks").rglob("*.json"))) == 1
    compared = suite.run("tiny", "--benchmark-compare", "--benchmark-compare-fail=mean:99999%")
    assert compared.ret == 0
    assert "(NOW)" in compared.stdout.str()
    assert "(0001_" in compared.stdout.str()
    suite.run("tiny", "--benchmark-sort=min").stdout.fnmatch_lines([f"{TABLE}*", "*test_it*"])


def test_other_peoples_benchmarks_show_their_table(suite: Suite) -> None:
    """Ours are not in it."""
    (suite.path / "test_theirs.py").write_text(THEIRS)
    result = suite.run("tiny")
    result.assert_outcomes(passed=2)
    text = result.stdout.str()
    table = text[text.index(TABLE) :]
    assert "test_theirs" in table
    assert "test_it" not in table
    assert ": 1 tests" in text
