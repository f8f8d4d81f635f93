"""A history file that cannot be written in the middle of a run: the run is kept elsewhere, and delivered later."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cli_answers
import pytest
from history_records import ENVIRONMENT, OK, make_case, make_launch, make_measurement

from ipexperf.cli import main
from ipexperf.errors import HistoryError, UnavailableError
from ipexperf.history import History, database
from ipexperf.history.spool import FOLDER, Spool
from ipexperf.judge.policy import Policy
from ipexperf.plan.options import Options
from ipexperf.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterator

JUDGED = replace(OK, policy=Policy().label)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files. A busy file is waited for only shortly."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    History.open(tmp_path / "perf.db").close()
    return tmp_path / "perf.db"


@contextmanager
def busy(file: Path) -> Iterator[None]:
    """Another process holds the lock of writers and does not release it."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def begun(file: Path, said: list[str]) -> Recorder:
    recorder = Recorder(Options(db=str(file), cache=file.parent / "cache"), Path("suite"), ("pytest",), said.append)
    recorder.open()
    record(recorder, "one")
    return recorder


def record(recorder: Recorder, *models: str) -> None:
    for model in models:
        one = make_measurement(make_case(model), launches=(make_launch(0, 0.01),), environment=ENVIRONMENT)
        recorder.case(one, JUDGED, Policy())


def models(file: Path) -> list[str]:
    with History.open(file, create=False) as history:
        [run] = history.runs()
        assert run.status == "finished"
        return sorted(row.case.model for row in history.measurements(run.uid))


def waiting(file: Path) -> list[Path]:
    spool = Spool.of(str(file), file.parent / "cache")
    assert spool is not None
    return spool.waiting()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_was_deleted_or_replaced_gets_the_run_anew(file: Path, *, replaced: bool) -> None:
    """SQLite would go on writing to the deleted file, and the run would be lost unnoticed."""
    said: list[str] = []
    recorder = begun(file, said)
    for path in file.parent.glob("perf.db*"):
        path.unlink()
    if replaced:
        History.open(file).close()
    record(recorder, "two")
    assert models_so_far(recorder.stand_in) == ["one", "two"]
    assert f"the history {file} was deleted or replaced while it was open." in said[0]
    recorder.finish("finished")
    recorder.close()
    assert models(file) == ["one", "two"]
    assert waiting(file) == []


def test_a_file_that_is_free_again_gets_the_run_at_its_end(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    recorder = begun(file, said)
    with busy(file):
        record(recorder, "two")
        assert models_so_far(recorder.stand_in) == ["one", "two"]
    record(recorder, "three")
    deliver = ("db", "deliver", "--db", str(file), "--cache", str(file.parent / "cache"))
    assert cli_answers.run(capsys, *deliver) == "0 runs delivered, 1 left\n"  # it is still being written
    recorder.finish("finished")
    recorder.close()
    assert models(file) == ["one", "three", "two"]
    assert waiting(file) == []
    assert "is locked. The run goes on; it is kept in" in said[0]
    assert said[1:] == ["delivered: 1 run that waited on this host"]


def models_so_far(file: Path | None) -> list[str]:
    assert file is not None
    with closing(sqlite3.connect(file)) as connection:
        return sorted(name for (name,) in connection.execute('SELECT model FROM "case"'))


def test_the_next_run_delivers_waiting_files(file: Path) -> None:
    said: list[str] = []
    with busy_after(begun(file, said), file) as recorder:
        recorder.finish("finished")
        recorder.close()
        assert "waits: the next run delivers it" in said[1]
        [path] = waiting(file)
        assert path.parent.parent == file.parent / "cache" / FOLDER
    other = Recorder(Options(db=str(file), cache=file.parent / "cache"), Path("suite"), (), said.append)
    other.open()
    other.close()
    assert said[2:] == ["delivered: 1 run that waited on this host"]
    assert models(file) == ["one", "two"]


@contextmanager
def busy_after(recorder: Recorder, file: Path) -> Iterator[Recorder]:
    with busy(file):
        record(recorder, "two")
        yield recorder


def test_a_damaged_file_stays_and_does_not_hold_up_the_others(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A message names it."""
    with busy_after(begun(file, []), file) as recorder:
        recorder.finish("finished")
        recorder.close()
    damaged = waiting(file)[0].with_name("0000.db")
    damaged.write_bytes(b"no history at all" * 100)
    assert main(["db", "deliver", "--db", str(file), "--cache", str(file.parent / "cache")]) == 2
    captured = capsys.readouterr()
    assert captured.out == "1 run delivered, 1 left\n"
    assert "0000.db" in captured.err
    said: list[str] = []
    begun(file, said).close()
    [line] = said
    assert line.startswith("a run that waits on this host cannot be delivered: ")
    assert waiting(file) == [damaged]


def test_a_full_disk_does_not_end_a_run(file: Path) -> None:
    """SQLite itself reports that the disk is full."""
    said: list[str] = []
    recorder = begun(file, said)
    fill(recorder)
    record(recorder, *(f"model_{number}" for number in range(40)))
    recorder.finish("finished")
    recorder.close()
    assert "database or disk is full. The run goes on" in said[0]
    assert len(models(file)) == 41


def fill(recorder: Recorder) -> None:
    """Let the file that is open grow by not more than a page."""
    assert recorder.history is not None
    connection: Any = recorder.history._engine.raw_connection()
    [pages] = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    connection.close()


def test_if_the_cache_cannot_be_written_a_run_waits_in_the_temporary_folder(file: Path, elsewhere: Path) -> None:
    (file.parent / "cache").write_text("a file, where the folder would be")
    with busy_after(begun(file, []), file) as recorder:
        assert recorder.stand_in is not None
        assert recorder.stand_in.is_relative_to(elsewhere)
        assert recorder.stand_in.parent.parent.stat().st_mode & 0o777 == 0o700
        recorder.finish("finished")
        recorder.close()
    assert [path.is_relative_to(elsewhere) for path in waiting(file)] == [True]


def test_nowhere_to_write_is_an_error(file: Path, elsewhere: Path) -> None:
    (file.parent / "cache").write_text("a file, where the folder would be")
    elsewhere.rmdir()
    elsewhere.write_text("and here")
    recorder = begun(file, [])
    with busy(file), pytest.raises(UnavailableError, match="is locked"):
        record(recorder, "two")
    record(recorder, "two")
    recorder.finish("finished")
    recorder.close()
    assert models(file) == ["one", "two"]


def test_a_folder_of_another_user_is_not_used(file: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody can make a folder of this name in the temporary folder, and put a run into it."""
    spool = Spool.of(str(file), file.parent / "cache")
    assert spool is not None
    (elsewhere / "theirs" / spool.spare.name).mkdir(parents=True)
    History.open(elsewhere / "theirs" / spool.spare.name / "planted.db").close()
    spool.spare.parent.symlink_to(elsewhere / "theirs")
    assert spool.waiting() == []
    with pytest.raises(HistoryError, match="somebody else"), spool.claimed(spool.spare / "run.db"):
        pass


def test_a_run_does_not_begin_without_its_file(file: Path) -> None:
    said: list[str] = []
    recorder: Any = Recorder(Options(db=str(file.parent / "no" / "perf.db")), Path("suite"), (), said.append)
    with pytest.raises(HistoryError):
        recorder.open()
    assert said == []
