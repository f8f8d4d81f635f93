"""Many writers, and writers that die."""

import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest
from history_records import HARDWARE, OK, make_case, make_measurement

from ipexperf.history import History

pytestmark = pytest.mark.process

WRITERS = 4
CASES = 5

KILLED = """
import os, sys
from history_records import HARDWARE, OK, make_case, make_measurement
from ipexperf.history import History, rows

history = History.open(sys.argv[1])
uid = history.start_run(HARDWARE, {})
history.record(uid, make_measurement(make_case("first")), OK)
history.record(uid, make_measurement(make_case("second")), OK)
if sys.argv[2] == "within":
    rows.verdict_row = lambda verdict: os._exit(9)
    history.record(uid, make_measurement(make_case("third")), OK)
os._exit(9)
"""


def write(target, number, barrier):
    barrier.wait(timeout=120)
    with History.open(target) as history:
        uid = history.start_run(HARDWARE, {"writer": number})
        for index in range(CASES):
            history.record(uid, make_measurement(make_case(f"model{index}")), OK)
        history.finish_run(uid, "finished")


def test_concurrent_writers_lose_nothing(tmp_path):
    """They create the tables and the same cases at the same time."""
    target = tmp_path / "history.db"
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(WRITERS)
    writers = [spawn.Process(target=write, args=(target, number, barrier)) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=180)
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    with History.open(target, create=False) as history:
        runs = history.runs()
        assert sorted(run.meta["writer"] for run in runs) == list(range(WRITERS))
        assert [run.outcomes for run in runs] == [{"ok": CASES}] * WRITERS
        assert len(history.trend()) == WRITERS * CASES


def test_a_killed_writer_loses_at_most_the_case_in_flight(tmp_path):
    """Killed between two records it loses nothing."""
    for moment in ("between", "within"):
        target = str(tmp_path / f"{moment}.db")
        command = [sys.executable, "-c", KILLED, target, moment]
        here = str(Path(__file__).parents[1])
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 9, done.stderr
        with History.open(target, create=False) as history:
            run = history.find_run("last")
            assert run.status == "running"
            assert [case.case.axes["model"] for case in history.measurements(run.uid)] == ["first", "second"]
            with history._engine.connect() as connection:
                assert connection.exec_driver_sql("PRAGMA integrity_check").scalar_one() == "ok"
                assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
                assert connection.exec_driver_sql('SELECT count(*) FROM "case"').scalar_one() == 2
            history.record(run.uid, make_measurement(make_case("third")), OK)
