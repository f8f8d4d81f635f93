"""The scripts that fill a big history, and that plant steps in recorded series, in small."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from history_records import ENVIRONMENT, OK, make_measurement

from ipexperf.history import History

pytestmark = pytest.mark.process

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(script, *arguments):
    command = [sys.executable, str(BENCHMARKS / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_a_generated_history_has_its_rows_and_answers_every_query(tmp_path):
    """It has as many measurements as requested, and the history reads them as any others."""
    path = tmp_path / "big.db"
    done = run("history/queries.py", "--rows", "2000", "--models", "1", "--rounds", "1", "--keep", str(path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2000 measurements: 25 runs of 80 series, ")
    assert len(done.stdout.splitlines()) == 13
    with History.open(path, create=False) as history:
        assert len(history.trend(None, until="2021-01-01")) == 2000
        assert set(history.trend()["verdict"]) == {"ok"}
        *appended, newest, before = history.runs(4)
        assert [run.started_at[:16] for run in (newest, before)] == ["2020-01-07T02:00", "2020-01-06T20:00"]
        assert [run.outcomes for run in appended] == [{"ok": 20}] * 2


def noisy(runs, moved, size, seed=3):
    """Values that scatter by half a per cent, and are larger from one run on."""
    chance = random.Random(seed)  # noqa: S311 - a simulation, no secret
    return [10 * (1 + size * (number >= moved)) * (1 + chance.gauss(0, 0.005)) for number in range(runs)]


def test_steps_planted_in_recorded_residuals_are_found(tmp_path):
    """The recorded series has a step of its own, which is taken away: without a planted one nothing is reported."""
    path = tmp_path / "ipexperf.db"
    with History.open(path) as history:
        for number, value in enumerate(noisy(60, 30, 0.2)):
            moment = f"2026-{3 + number // 30:02d}-{1 + number % 30:02d}T02:00:00Z"
            uid = history.start_run(ENVIRONMENT, {"started_at": moment})
            history.record(uid, make_measurement(steps=(value / 1000,)), OK)
    done = run("changepoints/plant.py", "--db", str(path), "--trials", "10")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("60 runs of 1 series, log sd 0.5%")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()[4:]]
    assert [row[0] for row in rows] == ["0%", "3%", "5%", "8%"]
    assert rows[0][1:] == ["10", "-", "-", "0.00"]
    assert rows[-1][1:3] == ["10", "100%"]
    done = run("changepoints/plant.py", "--db", str(path), "--runs", "61")
    assert (done.returncode, done.stdout) == (2, "")
    assert "has no series of step_time with 61 good runs" in done.stderr
