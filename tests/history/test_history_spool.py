"""A server that goes away during a run: this host stores every case, and delivers each once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cli_answers
import pytest
from history_records import ENVIRONMENT, OK, four_runs, make_case, make_launch, make_measurement, make_round, make_seat
from sqlalchemy import select, text

from ipexperf.errors import HistoryError, UnavailableError
from ipexperf.history import History, database, merging, schema
from ipexperf.history.spool import Spool
from ipexperf.judge.policy import Policy
from ipexperf.plan.options import Options
from ipexperf.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from postgres import Server

pytestmark = pytest.mark.server

JUDGED = replace(OK, policy=Policy().label)
MODELS = ("one", "two", "three", "four")
LOCAL = ("id", "uid", "judged_at", "started_at", "finished_at")
"""Columns that differ from history to history, or from run to run."""


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
def target(server: Server, made: str) -> str:
    """The address of a history on the server."""
    return server.database(made)


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
            self.recorder.add_rounds([make_round(*arms, number=number + 1)])
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


@pytest.mark.parametrize("moment", ["one", "end"])
def test_a_run_whose_server_went_away_is_delivered_by_the_next_run(
    moment: str, server: Server, target: str, whole: dict[str, Any], tmp_path: Path
) -> None:
    """The first run says where its file is. The next one delivers it before it begins."""
    run = Played(target, tmp_path)
    uid = run.play(lambda at: server.down(target) if at == moment else None)
    assert "The run goes on; it is kept in" in run.said[0]
    assert "waits: the next run delivers it" in run.said[1]
    assert [path.stem for path in waiting(target, tmp_path)] == [uid]
    with History.open(waiting(target, tmp_path)[0]) as kept:
        assert kept.runs()[0].status == "finished"

    server.up(target)
    other = Played(target, tmp_path)
    other.recorder.open()
    assert other.said == ["delivered: 1 run that waited on this host"]
    other.recorder.close()
    assert waiting(target, tmp_path) == []
    assert list(tmp_path.rglob("*.lock")) == []
    assert content(target) == whole


def deliver(target: str, folder: Path) -> int:
    spool = Spool.of(target, folder)
    assert spool is not None
    with History.open(target) as server:
        return spool.deliver(server).files


def test_a_server_that_was_never_reached_is_an_error(server: Server, target: str, tmp_path: Path) -> None:
    """A wrong address must not look like a server that is down."""
    server.down(target)
    run = Played(target, tmp_path)
    with pytest.raises(UnavailableError):
        run.recorder.open()
    assert list(tmp_path.rglob("*.db")) == []


def test_a_server_that_is_down_at_the_start_gets_the_run_later(
    server: Server, target: str, whole: dict[str, Any], tmp_path: Path
) -> None:
    first = Played(target, tmp_path)
    first.recorder.open()  # it was reached once
    first.recorder.close()
    server.down(target)
    run = Played(target, tmp_path)
    run.play()
    assert len(waiting(target, tmp_path)) == 1
    server.up(target)
    assert deliver(target, tmp_path) == 1
    assert content(target) == whole


def test_a_history_is_merged_into_a_server_once(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `ipexperf merge` does with files: a second merge changes nothing, and everything comes back whole."""
    source = tmp_path / "h.db"
    with History.open(source) as history:
        four_runs(history)
    said = cli_answers.run(capsys, "db", "merge", str(source), "--db", target)
    assert "4 runs, 2 cases" in said
    assert content(target) == content(str(source))
    assert "nothing that" in cli_answers.run(capsys, "db", "merge", str(source), "--db", target)
    assert content(target) == content(str(source))
    back = tmp_path / "back.db"
    with History.open(target) as source_history, History.open(back) as history:
        assert merging.copy(source_history, history).runs == 4
    assert content(str(back)) == content(target)


def refused(target: str, statement: str) -> HistoryError:
    """The error of a statement that the database refuses."""

    def execute() -> None:
        with History.open(target) as history, database.writing(history._engine, history._name) as connection:
            connection.execute(text(statement))

    with pytest.raises(HistoryError) as raised:
        execute()
    return raised.value


def test_other_errors_do_not_count_as_a_server_that_is_down(target: str) -> None:
    assert not isinstance(refused(target, "SELECT nothing FROM nowhere"), UnavailableError)


def test_a_run_is_stored_on_this_host_if_the_schema_changes_meanwhile(
    server: Server, target: str, tmp_path: Path
) -> None:
    """An old program never writes into tables that it does not know."""
    run = Played(target, tmp_path)

    def upgrade(at: str) -> None:
        if at == "three":
            name = named(target)
            server.execute("UPDATE alembic_version SET version_num = '9999'", name)

    run.play(upgrade)
    assert "was changed to schema 9999 meanwhile" in run.said[0]
    assert "newer than" in run.said[1]  # so it cannot deliver either
    [kept] = waiting(target, tmp_path)
    with History.open(kept) as history:
        assert history.runs()[0].status == "finished"


def test_the_role_of_the_documentation_can_record_and_cannot_delete(
    server: Server, target: str, whole: dict[str, Any], tmp_path: Path
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "database.md").read_text()
    sql = page.partition("```postgresql\n")[2].partition("```")[0]
    name = named(target)
    for statement in filter(str.strip, sql.split(";")):
        server.execute(statement, name)
    try:
        as_writer = server.url(name, "CHANGE ME", user="perf_writer")
        run = Played(as_writer, tmp_path)
        run.play()
        assert run.said == []
        assert content(target) == whole
        assert "permission denied" in str(refused(as_writer, "DELETE FROM run"))
    finally:
        server.execute("DROP OWNED BY perf_writer", name)
        server.execute("DROP ROLE perf_writer", name)
