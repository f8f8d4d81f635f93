"""A run that is stopped, softly or not: what was measured stays, and no worker does."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ipexperf.bench import guard

if TYPE_CHECKING:
    from collections.abc import Callable

    from plugin_suite import Suite


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_what_it_has_and_leaves_nobody(
    number: signal.Signals, suite: Suite, gone: Callable[[int], bool]
) -> None:
    """The summary is told, the database is whole, the run is 'interrupted', and the worker's whole tree is dead."""
    with suite.start("tiny,parent,other") as process:
        worker, child = suite.pids()
        process.send_signal(number)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, out
    assert "NO BASELINE (1)" in out
    assert gone(worker)
    assert gone(child)
    assert suite.launches() == [("tiny", "ok")]
    assert suite.statuses() == ["interrupted"]
    assert suite.query("SELECT count(*) FROM verdict") == [(1,)]


@pytest.mark.parametrize("model", ["parent", "leader"])
def test_a_killed_run_leaves_nothing_that_its_worker_started(
    model: str, suite: Suite, gone: Callable[[int], bool]
) -> None:
    """After SIGKILL, when pytest can clean nothing up, the worker's children end with it."""
    with suite.start(model) as process:
        pids = suite.pids()
        process.kill()
        process.communicate(timeout=30)
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


def test_a_killed_run_leaves_no_fork_server(suite: Suite, gone: Callable[[int], bool]) -> None:
    """After SIGKILL under `--perf-start fork` the server ends, with its worker and what that had started."""
    with suite.start("leader", "--perf-start", "fork") as process:
        worker, child = suite.pids()
        server = int(Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1].split()[1])
        assert server != process.pid
        everybody = {server, child, *guard.members(worker)}
        process.kill()
        process.communicate(timeout=30)
    assert len(everybody) == 4
    assert all(gone(pid) for pid in everybody)


def test_a_killed_run_loses_the_case_in_flight_alone(suite: Suite, gone: Callable[[int], bool]) -> None:
    """After SIGKILL the cases before are in the database, the worker is dead, and the next run joins them."""
    with suite.start("tiny,hang,other") as process:
        [worker] = suite.pids()
        process.kill()
        process.communicate(timeout=30)
    assert gone(worker)
    assert suite.launches() == [("tiny", "ok")]
    assert suite.statuses() == ["running"]
    suite.run("other").assert_outcomes(passed=1)
    assert suite.launches() == [("tiny", "ok"), ("other", "ok")]
    assert suite.statuses()[1] == "finished"
