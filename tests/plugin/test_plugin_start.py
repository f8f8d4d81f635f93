"""`--perf-start fork` from the command line to the database: forked and fresh launches are never in one series."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from plugin_suite import Suite

NAMES = 'SELECT DISTINCT c.id, c.params FROM launch l JOIN "case" c ON c.id = l.case_id ORDER BY c.id'


def labels(suite: Suite) -> list[dict[str, str]]:
    """The knobs of every case that has launches."""
    return [json.loads(params).get("knobs", {}) for _, params in suite.query(NAMES)]


def noted(suite: Suite) -> list[str]:
    """What each launch noted first."""
    return [json.loads(doc)["notes"][0] for (doc,) in suite.query("SELECT doc FROM launch ORDER BY rowid")]


def test_forked_launches_have_series_of_their_own(suite: Suite, gone: Callable[[int], bool]) -> None:
    """The case is another one by name and in the database, and its launches say how they were started."""
    result = suite.run("tiny,other", "--perf-start", "fork", "--perf-launches", "2")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["tiny-fake-fp32-spin-plain+start:fork *no_baseline"])
    assert labels(suite) == [{"start": "fork"}] * 2
    assert all(note.startswith("forked from a server, which had imported for ") for note in noted(suite))
    assert len(noted(suite)) == 4
    assert suite.query("SELECT count(*) FROM series WHERE metric = 'import_time'") == [(0,)]
    suite.run("tiny").assert_outcomes(passed=1)
    assert labels(suite) == [{"start": "fork"}, {"start": "fork"}, {}]


def test_what_cannot_be_forked_is_recorded_as_what_it_was(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the server has a thread, the launch is fresh, says why, and is in the series of fresh launches."""
    folder = suite.path / "more"
    folder.mkdir()
    (folder / "threads.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n"
    )
    result = suite.run("tiny", "--perf-start", "fork", f"--perf-load={folder / 'threads.py'}")
    result.assert_outcomes(passed=1)
    assert labels(suite) == [{}]
    [note] = noted(suite)
    assert note.startswith("started fresh, not forked: the imports left 2 threads")
    result.stdout.fnmatch_lines(["*tiny-fake-fp32-spin-plain: started fresh, not forked: *"])
    result.stdout.fnmatch_lines(["tiny-fake-fp32-spin-plain *no_baseline"])


@pytest.mark.parametrize("how", ["option", "variable", "ini"])
def test_a_start_that_nobody_knows_is_refused(how: str, suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence and exit code 4, wherever it was said."""
    arguments = []
    if how == "option":
        arguments = ["--perf-start", "spawn"]
    elif how == "variable":
        monkeypatch.setenv("IPEXPERF_START", "spawn")
    else:
        arguments = ["-o", "ipexperf_start=spawn"]
    result = suite.run("tiny", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*expected auto, fresh or fork, got 'spawn'"])
