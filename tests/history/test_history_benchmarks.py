"""The scripts that fill a big history and that calibrate change points do so, in small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ipexperf.history import History

pytestmark = pytest.mark.process

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(script, *arguments):
    command = [sys.executable, str(BENCHMARKS / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_a_made_up_history_has_its_rows_and_answers_every_question(tmp_path):
    """So many measurements as were asked for, which the history itself reads as any others."""
    path = tmp_path / "big.db"
    done = run("history/queries.py", "--rows", "2000", "--models", "1", "--rounds", "1", "--keep", str(path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2000 measurements: 25 runs of 80 series, ")
    assert len(done.stdout.splitlines()) == 14
    with History.open(path, create=False) as history:
        assert len(history.trend(None, until="2021-01-01")) == 2000
        assert {point.verdict for point in history.trend()} == {"ok"}
        *appended, newest, before = history.runs(4)
        assert [run.started_at[:16] for run in (newest, before)] == ["2020-01-07T02:00", "2020-01-06T20:00"]
        assert [run.outcomes for run in appended] == [{"ok": 20}] * 2


def test_a_made_up_history_goes_to_a_server(server):
    """All of it, once: what is asked there is answered by as many rows, and appending goes on behind them."""
    url = server.database()
    words = ("history/queries.py", "--rows", "2000", "--models", "1", "--rounds", "1", "--into", url)
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines()[:2]] == ["2000 measurements", "on the server"]
    assert len(done.stdout.splitlines()) == 15
    with History.open(url, create=False) as history:
        assert len(history.trend(None, until="2021-01-01")) == 2000
        assert [one.outcomes for one in history.runs(2)] == [{"ok": 20}] * 2
    again = run(*words)
    assert (again.returncode, again.stdout) == (1, ""), "it is refused before anything is made up"
    assert again.stderr.startswith("queries.py: there are runs in that database already")


def test_a_history_that_is_there_is_not_filled(tmp_path):
    """Made-up numbers never join real ones."""
    path = tmp_path / "mine.db"
    path.write_text("precious")
    done = run("history/queries.py", "--rows", "1", "--keep", str(path))
    assert (done.returncode, path.read_text()) == (2, "precious")
    assert "exists already" in done.stderr


def test_the_calibration_prints_the_same_tables_again():
    """Its seeds are fixed; a threshold of nothing raises alarms, which it counts."""
    arguments = ("--series", "2", "--thresholds", "1", "--nights", "40")
    first, again = (run("changepoints/calibrate.py", *arguments) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    (line,) = [line for line in first.stdout.splitlines() if line.startswith("| rho 0.3 | 1.0 ")]
    assert float(line.split("|")[4].split()[0]) > 1
