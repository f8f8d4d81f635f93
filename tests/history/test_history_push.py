"""Histories on a PostgreSQL server: files are pushed to it, and every command that reads says the same from there."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import cli_answers
import pytest
from history_records import CRASHED, DAYS, HARDWARE, OK, four_runs, make_case, make_launch, make_measurement, make_round
from postgres import Server
from sqlalchemy import select, text

from ipexperf.errors import HistoryError
from ipexperf.history import History, database, schema
from ipexperf.history.records import Accepted

SECRET = "open%20sesame"  # noqa: S105 - of no server at all
NOBODY = f"postgresql://tester:{SECRET}@127.0.0.1:1/perf"
"""There is nobody behind port 1."""
READING = (
    "show",
    "show --limit 2",
    "show last --json",
    "show last resnet50-cpu-bf16-infer-ipex --against last~1",
    "trend --json",
    "trend --model resnet50 --metric throughput --since 2026-05-02 --until last --csv",
    "trend --machine old-machine --csv",
    "compare last~1 last --json",
    "compare last --ratios --json",
    "changes --metric step_time --since 2026-05-02 --json",
    "report --csv",
    "report --pytest-benchmark last~1",
    "report --markdown last",
    "db prune --before last~1",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Four runs that began, and one that ended, whose case failed."""
    with History.open(tmp_path / "perf.db") as history:
        four_runs(history)
        uid = history.start_run(HARDWARE, {"started_at": "2026-05-05T08:00:00Z", "suite": "nightly"})
        history.record(uid, make_measurement(), OK)
        history.record(uid, make_measurement(make_case("a_b"), launches=(replace(CRASHED, log="\0words"),)), OK)
        history.record_round(uid, make_round(day=5))
        history.finish_run(uid, "finished")
    return tmp_path / "perf.db"


def content(target: str | Path) -> dict[str, list[str]]:
    """What a history has, without the numbers of its rows."""
    found = {}
    with History.open(target) as history, history._engine.connect() as connection:
        for table in schema.metadata.sorted_tables:
            named = [column for column in table.columns if column.name != "id" and not column.foreign_keys]
            rows = connection.execute(select(*named)).all() if named else []
            found[table.name] = sorted(map(repr, rows))
    return found


def push(capsys: Any, path: Path, target: str) -> str:
    return str(cli_answers.run(capsys, "db", "push", target, "--db", str(path)))


def test_a_server_that_is_away_gets_the_runs_later_and_each_once(
    server: Server, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, before = server.database(), content(path)
    server.stop()
    told = cli_answers.refused(capsys, "db", "push", target, "--db", str(path))
    assert re.match(r"ipexperf: the history postgresql://.* cannot be used: .*No such file or directory", told)
    server.start()
    assert "5 runs, 4 cases, 11 measurements, 16 launches, 5 rounds new in postgresql://" in push(capsys, path, target)
    assert "nothing that postgresql://" in push(capsys, path, target)
    assert content(target) == content(path) == before


def test_a_run_that_was_pushed_while_it_went_on_is_completed_by_the_next_push(
    server: Server, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A case that was measured again since replaces what was pushed of it."""
    target = server.database()
    with History.open(path) as history:
        uid = history.start_run(HARDWARE, {})
        history.record(uid, make_measurement(steps=(0.01,)), OK)
        push(capsys, path, target)
        history.record(uid, make_measurement(steps=(0.01, 0.02)), OK, again=True)
        history.finish_run(uid, "finished")
    assert "and 1 run went on" in push(capsys, path, target)
    assert content(target) == content(path)


def test_hosts_share_a_server(server: Server, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cases and environments that two files have are there once."""
    target, other = server.database(), tmp_path / "other.db"
    with History.open(other) as history:
        four_runs(history)
    push(capsys, path, target)
    assert "4 runs, 0 cases" in push(capsys, other, target)
    with History.open(target, create=False) as history:
        assert len(history.runs()) == 9


@pytest.mark.parametrize("command", READING)
def test_a_command_that_reads_says_the_same_from_a_server(
    command: str, pushed: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    path, target = pushed
    words = command.split()
    assert cli_answers.run(capsys, *words, "--db", target) == cli_answers.run(capsys, *words, "--db", str(path)) != ""


@pytest.fixture
def pushed(server: Server, path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Path, str]:
    """A file and a server with the same content."""
    target = server.database()
    push(capsys, path, target)
    return path, target


def test_pages_are_drawn_from_a_server(
    pushed: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their data are those of the file."""
    pages = {}
    for name, target in zip(("file", "server"), map(str, pushed), strict=True):
        cli_answers.run(capsys, "report", "--html", str(tmp_path / name), "--db", target)
        pages[name] = {page.name: data(page) for page in (tmp_path / name).rglob("*.html")}
    assert pages["server"] == pages["file"]
    assert len(pages["file"]) > 2


def data(page: Path) -> list[str]:
    return re.findall(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)


def test_a_server_can_be_pruned_and_accepted_from(pushed: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    """As a file can."""
    said = set()
    for target in map(str, pushed):
        with History.open(target, create=False) as history:
            uid = history.find_run("last").uid
            accepted = Accepted(
                uid, make_case(), make_case(), "xeon-8480-2s", frozenset({uid}), "2026-05-06T10:00:00Z", "ada", "x"
            )
            with history.accepting([accepted]):
                pass
        said.add(cli_answers.run(capsys, "db", "prune", "--before", DAYS[2], "--yes", "--db", target))
    assert len(said) == 1
    path, target = pushed
    assert content(target) == content(path)


def test_a_reader_sees_a_snapshot(pushed: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs that are pushed meanwhile do not appear."""
    _, target = pushed
    other, counted = tmp_path / "other.db", text("SELECT count(*) FROM run")
    with History.open(other) as history:
        history.start_run(HARDWARE, {})
    with History.open(target) as history, history.reading() as connection:
        before = connection.execute(counted).scalar_one()
        push(capsys, other, target)
        assert connection.execute(counted).scalar_one() == before == 5


def test_a_push_waits_for_another_one_for_a_limited_time(
    pushed: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, target = pushed
    monkeypatch.setattr(database, "BUSY_SECONDS", 1)
    with History.open(target) as history, history.writing():
        assert "lock timeout" in cli_answers.refused(capsys, "db", "push", target, "--db", str(path))
    assert "nothing that" in push(capsys, path, target)


def test_a_newer_schema_is_not_written_to(
    server: Server, pushed: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    path, target = pushed
    server.execute("UPDATE alembic_version SET version_num = '9999'", named(target))
    assert "schema 9999, newer than" in cli_answers.refused(capsys, "db", "push", target, "--db", str(path))


def named(url: str) -> str:
    """The name of a database."""
    return url.rpartition("/")[2].partition("?")[0]


def test_the_role_of_the_documentation_can_push_and_cannot_delete_runs(
    server: Server, pushed: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    path, target = pushed
    page = (Path(__file__).parents[2] / "docs" / "reference" / "database.md").read_text()
    sql, name = page.partition("```postgresql\n")[2].partition("```")[0], named(target)
    for statement in filter(str.strip, sql.split(";")):
        server.execute(statement, name)
    try:
        as_writer = server.url(name, "CHANGE ME", user="perf_writer")
        with History.open(path) as history:
            unfinished = history.find_run("last~1").uid
            again = make_measurement(launches=tuple(make_launch(number, 0.01) for number in range(4)))
            history.record(unfinished, again, OK, again=True)
            history.finish_run(unfinished, "finished")
        assert "and 1 run went on" in push(capsys, path, as_writer)
        assert content(target) == content(path)
        prune = ("db", "prune", "--before", "last", "--yes", "--db", as_writer)
        assert "permission denied" in cli_answers.refused(capsys, *prune)
    finally:
        server.execute("DROP OWNED BY perf_writer", name)
        server.execute("DROP ROLE perf_writer", name)


def refusal(target: str, **options: Any) -> str:
    with pytest.raises(HistoryError) as raised:
        History.open(target, **options)
    message = str(raised.value)
    assert "\n" not in message
    assert "sesame" not in message
    assert message.endswith(".")
    return message


def test_a_server_that_does_not_answer_is_one_sentence(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = cli_answers.refused(capsys, "db", "push", NOBODY, "--db", str(path))
    assert told.startswith("ipexperf: the history postgresql://***@127.0.0.1:1/perf cannot be used: ")
    assert "refused" in told


def test_a_wrong_password_is_one_sentence(server: Server) -> None:
    """It is the server's message, without the password."""
    message = refusal(server.url("postgres", password="sesame, close"))  # noqa: S106 - as above
    assert 'password authentication failed for user "tester"' in message


def test_an_empty_database_cannot_be_read(server: Server) -> None:
    """A push makes its tables. A query does not."""
    assert "is empty: it has no tables" in refusal(server.database(), create=False)


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra that installs it."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "pip install 'ipexperf[postgresql]'" in refusal(NOBODY)


def test_a_port_that_is_no_number_is_one_sentence() -> None:
    """The message does not contain the password."""
    told = "'postgresql://***@host:port/perf' is neither a path nor a database URL."
    assert refusal(f"postgresql://tester:{SECRET}@host:port/perf") == told


def test_a_command_for_files_refuses_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("db", "check"), ("db", "push", "other.db")):
        told = cli_answers.refused(capsys, *words, "--db", NOBODY)
        assert "is not an SQLite file: use the tools of its database server" in told
        assert "sesame" not in told
