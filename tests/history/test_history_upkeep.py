"""Checking, copying, shrinking and pruning a history; and what is wrong with a file, in one sentence."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from history_records import ENVIRONMENT, OK, make_case, make_measurement

from ipexperf.errors import HistoryError
from ipexperf.history import History, database, pruning, sqlite_files
from ipexperf.history.records import Accepted

DAYS = ("2026-05-01", "2026-05-02", "2026-05-03", "2026-05-04")


@pytest.fixture
def path(tmp_path):
    """Four runs; the case and the environment of the first are nobody else's."""
    path = tmp_path / "history.db"
    with History.open(path) as history:
        for number, day in enumerate(DAYS):
            own = {**ENVIRONMENT, "machine_key": "old-machine"} if number == 0 else ENVIRONMENT
            uid = history.start_run(own, {"started_at": f"{day}T08:00:00Z"})
            case = make_case("old" if number == 0 else "resnet50")
            history.record(uid, make_measurement(case, environment=own), OK)
    return path


def query(path, sql):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def dump(path):
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def uids(path):
    return [uid for (uid,) in query(path, "SELECT uid FROM run ORDER BY started_at")]


def accept(path, uid, case):
    key = "old-machine" if case.model == "old" else "xeon-8480-2s"
    one = Accepted(uid, case, case, key, frozenset({uid}), "2026-05-05T10:00:00Z", "ada", "x")
    with History.open(path) as history, history.accepting([one]):
        pass


def prune(path, before, **options):
    with History.open(path, create=False) as history:
        return pruning.prune(history, before, **options)


def test_a_dry_run_tells_what_would_go_and_changes_nothing(path):
    """The very rows that are deleted afterwards."""
    before = dump(path)
    told = prune(path, "2026-05-03")
    assert dump(path) == before
    assert told.runs == tuple(uids(path)[:2])
    assert told.rows == {"samples": 18, "launch": 6, "verdict": 2, "measurement": 4}
    assert prune(path, "2026-05-03", delete_them=True) == told
    assert len(uids(path)) == 2
    assert prune(path, "2026-05-03").runs == ()


def test_what_nobody_needs_any_more_goes_with_its_runs(path):
    """Cases, series, environments and policies without a run; and nothing points at nothing."""
    prune(path, "last~2", delete_them=True)
    assert query(path, 'SELECT model FROM "case"') == [("resnet50",)]
    assert query(path, "SELECT DISTINCT machine_key FROM series") == [("xeon-8480-2s",)]
    assert query(path, "SELECT count(*) FROM environment") == [(1,)]
    assert query(path, "PRAGMA foreign_key_check") == []
    assert sqlite_files.check(path).rows["run"] == 3


@pytest.mark.parametrize("superseded", [False, True])
def test_a_run_that_a_baseline_was_accepted_from_stays(path, superseded):
    """Whether its row is live or not, and however old it is: the history still says where a baseline came from."""
    first, second, *_ = uids(path)
    case = make_case()
    accept(path, second, case)
    if superseded:
        accept(path, uids(path)[2], case)
    told = prune(path, "2026-05-04", delete_them=True)
    assert second in told.kept
    assert second in uids(path)
    assert first not in uids(path)
    with History.open(path) as history:
        assert len(history.measurements(second)) == 1


def test_a_run_that_a_file_of_baselines_names_stays(path):
    """The file may have come from a repository, without a row in this history."""
    first, second, *_ = uids(path)
    told = prune(path, "2026-05-03", accepted={first, "another history's"}, delete_them=True)
    assert (told.runs, told.kept) == ((second,), (first,))
    assert uids(path)[0] == first


def test_the_samples_alone_can_go(path):
    """Every number of a run stays, and only what it was made of goes."""
    with History.open(path) as history:
        whole = history.show("last~3")
    told = prune(path, "2026-05-03", what="samples", delete_them=True)
    assert told.rows == {"samples": 18}
    assert query(path, "SELECT count(*) FROM samples") == [(18,)]
    with History.open(path) as history:
        assert history.show("last~3") == whole
        assert history.samples("last~3", make_case("old").uid) == {}


def test_pruning_an_empty_history_or_before_nothing_is_refused(path, tmp_path):
    """A word that is no run and no date, and a history without runs."""
    with pytest.raises(HistoryError, match="no run matches 'soon'"):
        prune(path, "soon", delete_them=True)
    History.open(tmp_path / "empty.db").close()
    with pytest.raises(HistoryError, match="this history is empty"):
        prune(tmp_path / "empty.db", "2026-05-03", delete_them=True)


def test_a_check_counts_what_there_is(path):
    """No fault, every table, and the runs that never said how they ended."""
    found = sqlite_files.check(path)
    assert (found.rows["run"], found.rows["case"], found.rows["launch"], found.unfinished) == (4, 2, 12, 4)
    assert found.revision == found.newest


def test_a_check_finds_a_page_that_was_overwritten(path):
    """Liar: the file opens, its first page is whole, and one page in the middle is not. It is not copied either."""
    query(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    data[4096 * 6 : 4096 * 9] = b"\x5a" * (4096 * 3)
    path.write_bytes(data)
    with pytest.raises(HistoryError, match=r"is damaged|malformed") as raised:
        sqlite_files.check(path)
    assert "\n" not in str(raised.value)
    with pytest.raises(HistoryError, match=r"is damaged|malformed"):
        sqlite_files.backup(path, path.with_name("copy.db"))
    assert not [file for file in path.parent.iterdir() if ".part" in file.name]
    assert not path.with_name("copy.db").exists()


def test_a_check_finds_a_row_that_points_at_nothing(path):
    """Liar: somebody deleted a run by hand."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM run WHERE id = 1")
        connection.commit()
    with pytest.raises(HistoryError, match=r"rows that point at nothing: a row of .* without its run"):
        sqlite_files.check(path)


def test_a_document_that_is_no_json_is_one_sentence(path):
    """Liar: a row that the database holds and nobody can read."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE run SET meta = '{broken'")
        connection.commit()
    with History.open(path) as history, pytest.raises(HistoryError, match="holds a document that is no JSON"):
        history.runs()


def test_a_backup_is_the_history_and_overwrites_nothing(path, tmp_path):
    """Made while somebody has the file open; a copy that would replace a file is refused."""
    with History.open(path):
        copy = sqlite_files.backup(path)
    assert copy.name.startswith("history.db.backup-")
    assert dump(copy) == dump(path)
    mine = tmp_path / "mine.db"
    assert sqlite_files.backup(path, mine) == mine
    before = mine.read_bytes()
    with pytest.raises(HistoryError, match=r"mine.db exists already"):
        sqlite_files.backup(path, mine)
    assert mine.read_bytes() == before
    with pytest.raises(HistoryError, match=r"the folder of .* does not exist"):
        sqlite_files.backup(path, tmp_path / "nowhere" / "copy.db")


def test_a_vacuum_gives_the_room_back(path):
    """What was pruned is no longer in the file, and what is left reads as before."""
    with History.open(path) as history:
        for _ in range(20):
            uid = history.start_run(ENVIRONMENT, {"started_at": "2026-04-01T00:00:00Z"})
            for number in range(5):
                history.record(uid, make_measurement(make_case(f"model{number}")), OK)
    prune(path, "2026-05-01", delete_them=True)
    left = dump(path)
    before, after = sqlite_files.vacuum(path)
    assert after < before
    assert dump(path) == left


@pytest.mark.parametrize("create", [True, False])
def test_an_empty_file_is_no_history_to_read(tmp_path, create):
    """A run may begin in it; a question may not, and leaves it empty."""
    path = tmp_path / "empty.db"
    path.touch()
    if create:
        History.open(path).close()
        assert path.stat().st_size > 0
        return
    with pytest.raises(HistoryError, match="is empty: it has no tables"):
        History.open(path, create=False)
    assert path.stat().st_size == 0


def test_a_locked_history_is_one_sentence(path, monkeypatch):
    """Another process holds it alone, for longer than anybody waits."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(HistoryError, match="cannot be used: database is locked"):
            History.open(path, create=False)


def test_a_history_that_may_not_be_written_is_refused(path, monkeypatch):
    """Reading writes a journal too; what the user may not do is said before anything is tried."""
    before = path.read_bytes()
    monkeypatch.setattr(database.os, "access", lambda *_: False)
    with pytest.raises(HistoryError, match="is not writable for this user"):
        History.open(path, create=False)
    assert path.read_bytes() == before
