"""Checking and pruning a history; and what is wrong with a file, in one sentence."""

import math
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from history_records import CRASHED, ENVIRONMENT, OK, four_runs, make_case, make_launch, make_measurement

from ipexperf.errors import HistoryError
from ipexperf.history import History, database, sqlite_files
from ipexperf.result import KEPT, Sample


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "history.db"
    with History.open(path) as history:
        four_runs(history)
    return path


def query(path, sql):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def dump(path):
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_a_check_counts_rows_and_unfinished_runs(path):
    found = sqlite_files.check(path)
    assert (found.rows["run"], found.rows["case"], found.rows["launch"], found.unfinished) == (4, 2, 12, 4)


def test_a_history_whose_writer_was_killed_is_checked(path):
    """The unfinished transaction is rolled back first, which a read-only connection could not do."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA cache_size = 1")
        [(before,)] = connection.execute("SELECT count(*) FROM run").fetchall()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE filler AS SELECT randomblob(4096) FROM measurement a, measurement b LIMIT 500")
        hot = path.with_name(f"{path.name}-journal")
        copies = {file: file.read_bytes() for file in (path, hot)}
        connection.execute("ROLLBACK")
    for file, data in copies.items():  # as they were when the process was killed
        file.write_bytes(data)
    assert sqlite_files.check(path).rows["run"] == before
    assert not hot.exists()


def test_a_check_finds_a_page_that_was_overwritten(path):
    """The file opens and its first page is whole."""
    query(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    data[4096 * 6 : 4096 * 9] = b"\x5a" * (4096 * 3)
    path.write_bytes(data)
    with pytest.raises(HistoryError, match=r"is damaged|malformed") as raised:
        sqlite_files.check(path)
    assert "\n" not in str(raised.value)


def test_a_check_accepts_whatever_is_recorded(tmp_path):
    """Failed, contended and interrupted cases, numbers that are not finite, and samples that were thinned or pruned."""
    path, many = tmp_path / "history.db", tuple(Sample(0.001 * n, 0.001, 0.0) for n in range(KEPT))
    step = make_launch(0, 0.01)
    launches = {
        "crashed": (step, CRASHED),
        "contended": (replace(step, outcome="contended", reason="busy"), make_launch(1, 0.02)),
        "infinite": (step, replace(step, index=1, metrics={"step_time": 0.01, "throughput": math.inf})),
        "thinned": (replace(step, samples=many),),
        "cut": (),
    }
    with History.open(path) as history:
        uid = history.start_run(ENVIRONMENT, {"started_at": "2026-05-01T00:00:00Z"})
        for name, own in launches.items():
            cut = "" if own else "the budget was spent"
            history.record(uid, make_measurement(make_case(name), launches=own, cut=cut), OK)
    assert sqlite_files.check(path).rows["launch"] == 7
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM samples")
        connection.commit()
    assert sqlite_files.check(path).rows["samples"] == 0


def test_a_check_finds_a_broken_reference(path):
    """A run was deleted by hand."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM run WHERE id = 1")
        connection.commit()
    with pytest.raises(HistoryError, match=r"rows whose parent is missing: a row of .* without its run"):
        sqlite_files.check(path)


@pytest.mark.parametrize("create", [True, False])
def test_an_empty_file_cannot_be_read(tmp_path, create):
    """A run may begin in it. A query refuses it and leaves it empty."""
    path = tmp_path / "empty.db"
    path.touch()
    if create:
        History.open(path).close()
        assert path.stat().st_size > 0
        return
    with pytest.raises(HistoryError, match="is empty: it has no tables"):
        History.open(path, create=False)
    assert path.stat().st_size == 0


def test_a_read_only_history_is_read_and_not_written(path, monkeypatch):
    """As it is. What a log beside it holds would be missing, so a history with one is refused."""
    with History.open(path) as history:
        runs = history.runs()
    before = path.read_bytes()
    monkeypatch.setattr(database.os, "access", lambda *_: False)
    with History.open(path, create=False) as history:
        assert history.runs() == runs
        with pytest.raises(HistoryError, match="attempt to write a readonly database"):
            history.start_run(ENVIRONMENT, {})
    assert path.read_bytes() == before
    assert sqlite_files.check(path).rows["run"] == len(runs)
    with pytest.raises(HistoryError, match="is not writable for this user; write to another file"):
        History.open(path)
    path.with_name(f"{path.name}-wal").write_text("more")
    with pytest.raises(HistoryError, match="is not empty: copy both"):
        History.open(path, create=False)
