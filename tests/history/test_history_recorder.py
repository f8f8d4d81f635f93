"""A run writes into a file of its host, and a file that cannot be written fails the case at hand."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from history_records import ENVIRONMENT, OK, make_case, make_launch, make_measurement

from ipexperf.errors import HistoryError
from ipexperf.history import History, database
from ipexperf.judge.policy import Policy
from ipexperf.plan.options import Options
from ipexperf.recorder import Recorder

JUDGED = replace(OK, policy=Policy().label)


def begun(file: str) -> Recorder:
    recorder = Recorder(Options(db=file), Path("suite"), ("pytest",))
    recorder.open()
    record(recorder, "one")
    return recorder


def record(recorder: Recorder, *models: str) -> None:
    for model in models:
        one = make_measurement(make_case(model), launches=(make_launch(0, 0.01),), environment=ENVIRONMENT)
        recorder.case(one, JUDGED, Policy())


def models(file: str) -> list[str]:
    with History.open(file, create=False) as history:
        [run] = history.runs()
        assert run.status == "finished"
        return sorted(row.case.axes["model"] for row in history.measurements(run.uid))


def test_a_file_that_another_process_writes_for_long_fails_the_case_at_hand(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those before and after it are recorded."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    recorder = begun(target)
    with closing(sqlite3.connect(target, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(HistoryError, match="is locked"):
            record(recorder, "two")
    record(recorder, "three")
    recorder.finish("finished")
    recorder.close()
    assert models(target) == ["one", "three"]


def test_a_full_disk_fails_the_case_at_hand(target: str) -> None:
    """SQLite itself reports that the disk is full. When there is room again, the run goes on."""
    recorder = begun(target)
    limit(recorder, "1")
    with pytest.raises(HistoryError, match="database or disk is full"):
        record(recorder, *(f"model_{number}" for number in range(40)))
    limit(recorder, "4294967294")
    record(recorder, "two")
    recorder.finish("finished")
    recorder.close()
    assert {"one", "two"} <= set(models(target))


def limit(recorder: Recorder, pages: str) -> None:
    """Let the file that is open have no more pages than these, or than it has."""
    assert recorder.history is not None
    connection: Any = recorder.history._engine.raw_connection()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    connection.close()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_was_deleted_or_replaced_is_noticed(target: str, *, replaced: bool) -> None:
    """SQLite would go on writing to the deleted file."""
    recorder = begun(target)
    for path in Path(target).parent.glob("history.db*"):
        path.unlink()
    if replaced:
        History.open(target).close()
    with pytest.raises(HistoryError, match="was deleted or replaced while it was open"):
        record(recorder, "two")
    recorder.close()
