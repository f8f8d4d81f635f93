"""Good files to damage: a history with runs, pairs, rounds and a bisection, a baseline file, and a lock."""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from ipexperf import lock
from ipexperf.bench.machine.inventory import Package
from ipexperf.case import NetworkCase
from ipexperf.history import History
from ipexperf.judge.baseline import Baselines, CaseBaseline, Session, write
from ipexperf.judge.bisection import BisectionRecord, Change
from ipexperf.ratio import Ratio

TESTS = Path(__file__).parents[2] / "tests"
CASE = NetworkCase("resnet50", "cpu", "bf16", "infer_jit", "ipex", 8, 224)
DAY = "2026-05-04T10:00:00.000000+00:00"


def fill(place: Path) -> Path:
    """Write the files into a folder. Return the path of the history."""
    path = _history(place / "ipexperf.db")
    sessions = tuple(Session(f"run{n}", DAY, "abc", (0.01, 0.0101, 0.0099), {"step_time": 0.01}) for n in range(3))
    environment = {
        "machine_key": "machine",
        "hardware": {"cpu": "Xeon"},
        "software": {"torch": "2.8.0"},
        "variables": {},
    }
    kept = CaseBaseline(CASE, sessions, {"accuracy": 0.9}, "because", "me", DAY, "2027-01-01", environment, "1:abcdef")
    write(place / "baselines", Baselines("machine", (kept,)))
    packages = (Package("torch", "2.8.0", "ab12cd34ef560789"), Package("numpy", "2.0.1", "", origin="file"))
    (place / "good.lock").write_text(
        lock.Lock("3.11.9", "linux-x86_64", packages, variables=(("OMP_NUM_THREADS", "2"),)).text
    )
    return path


def _history(path: Path) -> Path:
    sys.path[:0] = [str(TESTS), str(TESTS / "dashboard"), str(TESTS / "history")]
    try:
        import dashboard_records
        import history_records
    finally:
        del sys.path[:3]
    dashboard_records.fill(path, runs=5)
    with History.open(path) as history:
        history_records.four_runs(history)
        uid = history.find_run("last").uid
        recorded = history.measurements(uid)
        case = recorded[0]
        change = Change("package", "numpy", "1.26", "2.0")
        search = BisectionRecord(
            case=case.case,
            machine_key=case.machine_key,
            started_at=DAY,
            finished_at=DAY,
            good="lock:aaaa",
            bad="lock:bbbb",
            outcome="culprit",
            reason="numpy is to blame",
            culprits=(change,),
            ends=Ratio(1.2, 1.1, 1.3),
            culprit=Ratio(1.2, 1.1, 1.3),
            measured=3,
            differences=4,
        )
        history.record_bisection(search, "suites")
    with closing(sqlite3.connect(path)) as connection:  # one file, without a log beside it
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    return path
