"""A clock that is set back, by an administrator or a time server, loses nothing and fails nothing."""

from __future__ import annotations

import shutil
import subprocess
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest
from plugin_suite import CELL, SHORT

if TYPE_CHECKING:
    from pathlib import Path

    from plugin_suite import Suite

LIBRARY = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *into) {
    int status = syscall(SYS_clock_gettime, clock, into);
    const char *set_back = getenv("CLOCK_SET_BACK");
    if (status == 0 && clock == CLOCK_REALTIME && set_back && access(set_back, F_OK) == 0) into->tv_sec -= 3600;
    return status;
}
"""
"""Tells a process that it is an hour earlier, from when a file is there."""
SET_BACK = """
import os
import pathlib
from math import inf

from ipexperf.conduct import gate
from ipexperf.judge.policy import GatePolicy

gate.POLICY = GatePolicy(others=inf, steal=inf, held_up=inf)  # the machine's other work is not the matter here


def pytest_runtest_logreport(report):
    if report.when == "call":
        pathlib.Path(os.environ["CLOCK_SET_BACK"]).touch()
"""


@pytest.fixture
def set_back(suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file by which the clock of a fresh run, and of all that it starts, is set back."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    source, library = tmp_path / "clock.c", tmp_path / "clock.so"
    source.write_text(LIBRARY)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    file = tmp_path / "set back"
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("CLOCK_SET_BACK", str(file))
    (suite.path / "conftest.py").write_text(SET_BACK)
    return file


def hours_ago(text: str) -> float:
    return (datetime.now(timezone.utc) - datetime.fromisoformat(text.replace("Z", "+00:00"))).total_seconds() / 3600


def test_a_clock_that_is_set_back_in_the_middle_of_a_run_loses_nothing(suite: Suite, set_back: Path) -> None:
    """Durations are of another clock. The next run says that the newest one seems to be from the future."""
    words = (*suite.load, "--model", "tiny,other", *CELL, *SHORT)
    result = suite.fresh(*words)
    result.assert_outcomes(passed=2)
    assert set_back.exists()
    assert suite.statuses() == ["finished"]
    assert sorted(suite.launches()) == [("other", "ok"), ("tiny", "ok")]
    [(begun, ended)] = suite.query("SELECT started_at, finished_at FROM run")
    assert hours_ago(begun) < 0.5 < hours_ago(ended), "the clock was not set back"
    assert suite.query("SELECT count(*) FROM round WHERE seconds NOT BETWEEN 0 AND 600") == [(0,)]
    again = suite.fresh(*words)
    again.assert_outcomes(passed=2)
    again.stdout.fnmatch_lines(["*a clock is wrong*"])
    assert suite.statuses() == ["finished", "finished"]
