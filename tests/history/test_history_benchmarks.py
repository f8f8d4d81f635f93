"""The script that fills a big history, in small."""

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
