"""Pruning: which rows are deleted, and which stay."""

import pytest
from history_records import four_runs, make_case
from sqlalchemy import select, text

from ipexperf.errors import HistoryError
from ipexperf.history import History, pruning, schema
from ipexperf.history.records import Accepted


@pytest.fixture
def target(target):
    with History.open(target) as history:
        four_runs(history)
    return target


def query(target, sql):
    with History.open(target) as history, history._engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(sql))]


def dump(target):
    """Every row of every table."""
    with History.open(target) as history, history._engine.connect() as connection:
        tables = schema.metadata.sorted_tables
        return {table.name: sorted(map(repr, connection.execute(select(table)))) for table in tables}


def uids(target):
    return [uid for (uid,) in query(target, "SELECT uid FROM run ORDER BY started_at")]


def accept(target, uid, case):
    key = "old-machine" if case.model == "old" else "xeon-8480-2s"
    one = Accepted(uid, case, case, key, frozenset({uid}), "2026-05-05T10:00:00Z", "ada", "x")
    with History.open(target) as history, history.accepting([one]):
        pass


def prune(target, before, **options):
    with History.open(target, create=False) as history:
        return pruning.prune(history, before, **options)


def test_a_dry_run_counts_the_rows_that_would_be_deleted_and_changes_nothing(target):
    before = dump(target)
    told = prune(target, "2026-05-03")
    assert dump(target) == before
    assert told.runs == tuple(uids(target)[:2])
    rounds = {"paired": 2, "seat": 4, "round": 2}
    assert told.rows == {"samples": 18, "launch": 6, "verdict": 2, "measurement": 4, **rounds}
    assert prune(target, "2026-05-03", delete_them=True) == told
    assert len(uids(target)) == 2
    assert prune(target, "2026-05-03").runs == ()


def test_pruning_deletes_rows_that_nothing_refers_to(target):
    """Cases, series, environments and policies without a run. Every reference stays valid."""
    prune(target, "last~2", delete_them=True)
    assert query(target, 'SELECT model FROM "case"') == [("resnet50",)]
    assert query(target, "SELECT DISTINCT machine_key FROM series") == [("xeon-8480-2s",)]
    assert query(target, "SELECT count(*) FROM environment") == [(1,)]
    assert query(target, "SELECT count(*) FROM round") == [(3,)]
    assert query(target, "SELECT count(*) FROM seat") == query(target, "SELECT 2 * count(*) FROM paired") == [(6,)]
    assert len(uids(target)) == 3


@pytest.mark.parametrize("superseded", [False, True])
def test_a_run_that_a_baseline_was_accepted_from_stays(target, superseded):
    """However old it is, and also if its acceptance is superseded."""
    first, second, *_ = uids(target)
    case = make_case()
    accept(target, second, case)
    if superseded:
        accept(target, uids(target)[2], case)
    told = prune(target, "2026-05-04", delete_them=True)
    assert second in told.kept
    assert second in uids(target)
    assert first not in uids(target)
    with History.open(target) as history:
        assert len(history.measurements(second)) == 1


def test_a_run_that_a_baseline_file_names_stays(target):
    """The file may come from a repository, without a row in this history."""
    first, second, *_ = uids(target)
    told = prune(target, "2026-05-03", accepted={first, "another history's"}, delete_them=True)
    assert (told.runs, told.kept) == ((second,), (first,))
    assert uids(target)[0] == first


def test_samples_can_be_deleted_alone(target):
    """Every number of a run stays except its samples."""
    with History.open(target) as history:
        whole = history.show("last~3")
    told = prune(target, "2026-05-03", what="samples", delete_them=True)
    assert told.rows == {"samples": 18}
    assert query(target, "SELECT count(*) FROM samples") == [(18,)]
    with History.open(target) as history:
        assert history.show("last~3") == whole
        assert history.samples("last~3", make_case("old").uid) == {}


def test_pruning_an_empty_history_or_before_an_unknown_moment_is_refused(target, empty_file):
    with pytest.raises(HistoryError, match="no run matches 'soon'"):
        prune(target, "soon", delete_them=True)
    with pytest.raises(HistoryError, match="this history is empty"):
        prune(empty_file, "2026-05-03", delete_them=True)
