"""A server that goes away during a run: this host stores every case, and delivers each once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cli_answers
import cut_line
import postgres
import pytest
from history_records import ENVIRONMENT, OK, four_runs, make_case, make_launch, make_measurement, make_round, make_seat
from sqlalchemy import event, select, text

from ipexperf.errors import HistoryError, UnavailableError
from ipexperf.history import History, copying, database, schema
from ipexperf.history.spool import Spool
from ipexperf.judge.policy import Policy
from ipexperf.plan.options import Options
from ipexperf.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from postgres import Server

pytestmark = pytest.mark.server

JUDGED = replace(OK, policy=Policy().label)
MODELS = ("one", "two", "three", "four")
TIMED = {**ENVIRONMENT, "hardware": {"cpu": "Xeon 8480+", "threads": 2}}
LOCAL = ("id", "uid", "judged_at", "started_at", "finished_at")
"""Columns that differ from history to history, or from run to run."""


@pytest.fixture
def line(server: Server) -> Iterator[cut_line.Line]:
    with cut_line.line(server._sockets) as line:
        yield line


@pytest.fixture(scope="module")
def made(server: Server) -> str:
    """The database of a history without a run, which the others are copies of."""
    url = server.database()
    History.open(url).close()
    return named(url)


def named(url: str) -> str:
    """The name of a database."""
    return url.rpartition("/")[2].partition("?")[0]


@pytest.fixture
def direct(server: Server, made: str) -> str:
    """The address of a history on the server, without the line."""
    return server.database(made)


@pytest.fixture
def target(direct: str, line: cut_line.Line) -> str:
    """The same history through the line."""
    return line.url(named(direct))


class Played:
    """A run of four cases, each recorded twice, as runs do it: unfinished after a round, then whole."""

    def __init__(self, target: str, folder: Path) -> None:
        self.said: list[str] = []
        self.recorder = Recorder(Options(db=target, cache=folder), Path("suite"), ("pytest",), self.said.append)

    def play(self, between: Callable[[str], None] = lambda _: None) -> str:
        self.recorder.open()
        for number, model in enumerate(MODELS):
            between(model)
            case = make_case(model)
            launches = (make_launch(0, 0.01 + number / 1000),)
            for steps in (launches, (*launches, make_launch(1, 0.012))):
                self.recorder.case(make_measurement(case, launches=steps, environment=ENVIRONMENT), JUDGED, Policy())
            arms = (make_seat(case, 0.01), make_seat(case, 0.01, "twin"))
            self.recorder.round(make_round(*arms, number=number + 1))
        between("end")
        self.recorder.finish("finished")
        self.recorder.close()
        return self.recorder.uid or ""


def content(target: str) -> dict[str, Any]:
    """What a history has, without the numbers of its rows, and of this very run without what differs each time."""
    found: dict[str, Any] = {}
    with History.open(target) as history, history._engine.connect() as connection:
        for table in schema.metadata.sorted_tables:
            named = [column for column in table.columns if column.name not in LOCAL and not column.foreign_keys]
            rows = connection.execute(select(*named)).all() if named else []
            found[table.name] = sorted(map(repr, rows))
    return found


@pytest.fixture(scope="module")
def whole(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the run leaves on a server that is always up."""
    url = server.database()
    Played(url, tmp_path_factory.mktemp("elsewhere")).play()
    return content(url)


def waiting(target: str, folder: Path) -> list[Path]:
    spool = Spool.of(target, folder)
    assert spool is not None
    return spool.waiting()


def test_a_reachable_server_gets_everything_directly(target: str, whole: dict[str, Any], tmp_path: Path) -> None:
    run = Played(target, tmp_path)
    run.play()
    assert run.said == []
    assert waiting(target, tmp_path) == []
    assert content(target) == whole


def test_only_the_last_record_of_each_case_is_kept_in_memory(target: str, tmp_path: Path) -> None:
    """So memory grows with the cases and not with the rounds."""
    run = Played(target, tmp_path)
    run.play()
    assert len(run.recorder._written) == len(("begin", *MODELS, "settle")) + len(MODELS)


def test_runs_of_several_hosts_share_connections(target: str, direct: str, line: cut_line.Line, tmp_path: Path) -> None:
    """A server limits connections, and the runs of a hundred hosts take no more than one run."""
    runs = [Played(target, tmp_path) for _ in range(3)]
    first, second, third = (run.recorder for run in runs)
    first.open()
    second.open(first)
    third.open(first)
    assert first.history is second.history is third.history
    for run, recorder in zip(runs, (first, second, third), strict=True):
        if recorder is third:
            line.down()  # from here on there is no server
        recorder.case(make_measurement(make_case("one"), environment=ENVIRONMENT), JUDGED, Policy())
        recorder.finish("finished")
        recorder.close()
        assert bool(run.said) == (recorder is third)
    line.up = True
    assert deliver(target, tmp_path) == 1
    with History.open(direct) as history:
        assert [one.outcomes for one in history.runs()] == [{"ok": 1}] * 3


def test_two_runs_can_wait_for_the_server_at_once(target: str, line: cut_line.Line, tmp_path: Path) -> None:
    """Each has its own file."""
    first, second = Played(target, tmp_path), Played(target, tmp_path)
    first.recorder.open()
    first.recorder.close()
    line.down()
    first.recorder.open()
    second.recorder.open(first.recorder)
    assert first.recorder.stand_in is not None
    assert second.recorder.stand_in is not None
    assert first.recorder.stand_in != second.recorder.stand_in
    first.recorder.close()
    second.recorder.close()


@pytest.mark.parametrize("moment", [*MODELS, "end"])
def test_a_run_whose_server_went_away_is_delivered_by_the_next_run(
    moment: str, target: str, direct: str, line: cut_line.Line, whole: dict[str, Any], tmp_path: Path
) -> None:
    """The first run says where its file is. The next one delivers it before it begins."""
    run = Played(target, tmp_path)
    uid = run.play(lambda at: line.down() if at == moment else None)
    assert "The run goes on; it is kept in" in run.said[0]
    assert "waits: the next run delivers it" in run.said[1]
    assert [path.stem for path in waiting(target, tmp_path)] == [uid]
    with History.open(waiting(target, tmp_path)[0]) as kept:
        assert kept.runs()[0].status == "finished"

    line.up = True
    other = Played(target, tmp_path)
    other.recorder.open()
    assert other.said == ["delivered: 1 run that waited on this host"]
    other.recorder.close()
    assert waiting(target, tmp_path) == []
    assert list(tmp_path.rglob("*.lock")) == []
    assert content(direct) == whole


def test_a_server_that_comes_back_gets_the_run_at_its_end(
    target: str, direct: str, line: cut_line.Line, whole: dict[str, Any], tmp_path: Path
) -> None:
    def between(at: str) -> None:
        if at == "two":
            line.down()
        if at == "end":
            line.up = True

    run = Played(target, tmp_path)
    run.play(between)
    assert run.said[1:] == ["delivered: 1 run that waited on this host"]
    assert content(direct) == whole


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("commit", [1, 2, 3, 5, 8, 13])
def test_a_commit_that_is_cut_is_neither_lost_nor_stored_twice(
    when: str, commit: int, target: str, direct: str, line: cut_line.Line, whole: dict[str, Any], tmp_path: Path
) -> None:
    """`after`: the server has committed, and its answer was lost."""
    left = commit

    def cut(data: bytes) -> str:
        nonlocal left
        left -= b"COMMIT" in data
        return when if left == 0 and b"COMMIT" in data else ""

    run = Played(target, tmp_path)
    run.recorder.open()
    line.cut_when = cut
    run.play()
    assert "it is kept in" in run.said[0]
    line.cut_when, line.up = lambda _: "", True
    assert deliver(target, tmp_path) == 1
    assert content(direct) == whole


def deliver(target: str, folder: Path) -> int:
    spool = Spool.of(target, folder)
    assert spool is not None
    with History.open(target) as server:
        return spool.deliver(server).files


@pytest.fixture(scope="module")
def mortal(server: Server) -> Iterator[Server]:
    """A server that keeps what it commits when it is killed. Started only where `server` could be."""
    del server
    programs = postgres.binaries()
    assert programs is not None
    with postgres.running(programs, (f"listen_addresses={postgres.HERE}", "fsync=off")) as running:
        yield running


@pytest.mark.parametrize("when", ["in the middle of a case", "at a commit", "between two cases"])
def test_a_server_whose_processes_are_all_killed_loses_nothing_and_doubles_nothing(
    when: str, mortal: Server, whole: dict[str, Any], tmp_path: Path
) -> None:
    """It restarts and recovers, and this host delivers what it had not committed."""
    direct = mortal.database()
    target = mortal.tcp(direct, sslmode="disable")
    run = Played(target, tmp_path)
    run.recorder.open()
    kills = 0

    def kill(*_: object) -> None:
        nonlocal kills
        if kills == 0:
            kills += 1
            mortal.kill()

    def statement(connection: Any, cursor: Any, words: str, *more: Any) -> None:
        del connection, cursor, more
        if words.startswith("INSERT INTO samples"):
            kill()

    def between(at: str) -> None:
        if at == "three":
            assert run.recorder.history is not None
            engine = run.recorder.history._engine
            if when == "between two cases":
                kill()
            elif when == "at a commit":
                event.listen(engine, "commit", kill)
            else:
                event.listen(engine, "before_cursor_execute", statement)

    run.play(between)
    assert kills == 1
    assert "The run goes on; it is kept in" in run.said[0]
    assert "waits: the next run delivers it" in run.said[1]
    mortal.start()
    with History.open(direct) as history:
        assert [(one.status, one.outcomes) for one in history.runs()] == [("running", {"ok": 2})]
    assert deliver(target, tmp_path) == 1
    assert waiting(target, tmp_path) == []
    assert content(direct) == whole


def test_a_server_that_was_never_reached_is_an_error(target: str, line: cut_line.Line, tmp_path: Path) -> None:
    """A wrong address must not look like a server that is down."""
    line.down()
    run = Played(target, tmp_path)
    with pytest.raises(UnavailableError):
        run.recorder.open()
    assert list(tmp_path.rglob("*.db")) == []


def test_a_server_that_is_down_at_the_start_gets_the_run_later(
    target: str, direct: str, line: cut_line.Line, whole: dict[str, Any], tmp_path: Path
) -> None:
    first = Played(target, tmp_path)
    first.recorder.open()  # it was reached once
    first.recorder.close()
    line.down()
    run = Played(target, tmp_path)
    run.play()
    assert len(waiting(target, tmp_path)) == 1
    line.up = True
    assert deliver(target, tmp_path) == 1
    assert content(direct) == whole


def test_a_file_that_is_being_written_is_left_alone(target: str, line: cut_line.Line, tmp_path: Path) -> None:
    run = Played(target, tmp_path)

    def between(at: str) -> None:
        if at == "two":
            line.down()
        if at == "four":
            line.up = True
            assert len(waiting(target, tmp_path)) == 1
            assert deliver(target, tmp_path) == 0

    run.play(between)
    assert waiting(target, tmp_path) == []  # delivered at its end


def test_a_damaged_file_stays_and_does_not_hold_up_the_others(
    target: str, line: cut_line.Line, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Played(target, tmp_path)
    run.play(lambda at: line.down() if at == "one" else None)
    damaged = waiting(target, tmp_path)[0].with_name("0000.db")
    damaged.write_bytes(b"no history at all" * 100)
    line.up = True
    error = cli_answers_deliver(capsys, target, tmp_path)
    assert "0000.db" in error
    assert waiting(target, tmp_path) == [damaged]
    other = Played(target, tmp_path)
    other.recorder.open()
    assert other.said[0].startswith("a run that waits on this host cannot be delivered: ")
    other.recorder.close()


def cli_answers_deliver(capsys: pytest.CaptureFixture[str], target: str, folder: Path) -> str:
    from ipexperf.cli import main

    assert main(["db", "deliver", "--db", target, "--cache", str(folder)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "1 run delivered, 1 left\n"
    return captured.err


def test_the_command_says_what_it_delivered(
    target: str, line: cut_line.Line, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--db", target, "--cache", str(tmp_path))
    assert cli_answers.run(capsys, "db", "deliver", *where) == "no run waits on this host\n"
    Played(target, tmp_path).play(lambda at: line.down() if at == "three" else None)
    assert "cannot be used" in cli_answers.refused(capsys, "db", "deliver", *where)
    line.up = True
    assert cli_answers.run(capsys, "db", "deliver", *where) == "1 run delivered, 0 left\n"


def test_a_writer_that_waits_too_long_stores_its_run_on_this_host(
    target: str, direct: str, whole: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one holds the lock of writers. After the limit the run goes on here."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 1)
    run = Played(target, tmp_path)
    run.recorder.open()
    with History.open(direct) as other, database.writing(other._engine, other._name):
        run.recorder.case(make_measurement(make_case("one"), environment=ENVIRONMENT), JUDGED, Policy())
    assert "lock timeout" in run.said[0]
    run.recorder.finish("finished")
    run.recorder.close()
    with History.open(direct) as history:
        assert history.runs()[0].status == "finished"


def test_a_history_is_merged_into_a_server_once(
    direct: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `ipexperf merge` does with files: a second merge changes nothing."""
    source = tmp_path / "h.db"
    with History.open(source) as history:
        four_runs(history)
    said = cli_answers.run(capsys, "merge", str(source), "--db", direct)
    assert "4 runs, 2 cases" in said
    assert content(direct) == content(str(source))
    assert "nothing that" in cli_answers.run(capsys, "merge", str(source), "--db", direct)
    assert content(direct) == content(str(source))


def test_a_history_on_a_server_is_merged_into_a_file(direct: str, tmp_path: Path) -> None:
    back = tmp_path / "back.db"
    with History.open(direct) as server, History.open(back) as history:
        four_runs(server)
        assert copying.copy(server, history).runs == 4
    assert content(str(back)) == content(direct)


def refused(target: str, statement: str) -> HistoryError:
    """The error of a statement that the database refuses."""

    def execute() -> None:
        with History.open(target) as history, database.writing(history._engine, history._name) as connection:
            connection.execute(text(statement))

    with pytest.raises(HistoryError) as raised:
        execute()
    return raised.value


def test_other_errors_do_not_count_as_a_server_that_is_down(direct: str) -> None:
    assert not isinstance(refused(direct, "SELECT nothing FROM nowhere"), UnavailableError)


def test_a_run_is_stored_on_this_host_if_the_schema_changes_meanwhile(
    target: str, direct: str, tmp_path: Path, server: Server
) -> None:
    """An old program never writes into tables that it does not know."""
    run = Played(target, tmp_path)

    def upgrade(at: str) -> None:
        if at == "three":
            name = named(direct)
            server.execute("UPDATE alembic_version SET version_num = '9999'", name)

    run.play(upgrade)
    assert "was changed to schema 9999 meanwhile" in run.said[0]
    assert "newer than" in run.said[1]  # so it cannot deliver either
    [kept] = waiting(target, tmp_path)
    with History.open(kept) as history:
        assert history.runs()[0].status == "finished"


def test_the_role_of_the_documentation_can_record_and_cannot_delete(
    direct: str, server: Server, whole: dict[str, Any], tmp_path: Path
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "database.md").read_text()
    sql = page.partition("```postgresql\n")[2].partition("```")[0]
    name = named(direct)
    for statement in filter(str.strip, sql.split(";")):
        server.execute(statement, name)
    try:
        as_writer = server.url(name, "CHANGE ME", user="perf_writer")
        run = Played(as_writer, tmp_path)
        run.play()
        assert run.said == []
        assert content(direct) == whole
        assert "permission denied" in str(refused(as_writer, "DELETE FROM run"))
    finally:
        server.execute("DROP OWNED BY perf_writer", name)
        server.execute("DROP ROLE perf_writer", name)
