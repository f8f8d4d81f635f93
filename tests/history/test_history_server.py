"""A history on a PostgreSQL server: its address, its errors, its lock of writers, and no password in messages."""

from __future__ import annotations

import sys

import pytest
from history_records import HARDWARE, OK, make_case, make_measurement, make_round
from sqlalchemy import text

from ipexperf import cli
from ipexperf.errors import HistoryError, UnavailableError
from ipexperf.history import History, database
from ipexperf.history.addresses import url_of

SECRET = "open%20sesame"  # noqa: S105 - of no server at all


def refusal(target, **options):
    with pytest.raises(HistoryError) as raised:
        History.open(target, **options)
    message = str(raised.value)
    assert "\n" not in message
    assert "sesame" not in message
    assert message.endswith(".")
    return message


def test_a_server_that_does_not_answer_is_one_sentence():
    """There is nobody behind port 1."""
    message = refusal(f"postgresql://tester:{SECRET}@127.0.0.1:1/perf")
    assert message.startswith("the history postgresql://***@127.0.0.1:1/perf cannot be used: ")
    assert "refused" in message


def test_a_wrong_password_is_one_sentence(server):
    """It is the server's message, without the password."""
    message = refusal(server.url("postgres", password="sesame, close"))  # noqa: S106 - as above
    assert 'password authentication failed for user "tester"' in message


def test_an_empty_database_cannot_be_read(server):
    """A run creates the tables. A query does not."""
    target = server.database()
    assert "is empty: it has no tables" in refusal(target, create=False)
    History.open(target).close()
    History.open(target, create=False).close()


def test_a_missing_driver_is_named(monkeypatch):
    """With the extra that installs it."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "install the extra `postgresql` of ipexperf" in refusal(f"postgresql://tester:{SECRET}@127.0.0.1:1/perf")


def test_a_port_that_is_no_number_is_one_sentence():
    """The message does not contain the password."""
    told = "'postgresql://***@host:port/perf' is neither a path nor a database URL."
    assert refusal(f"postgresql://tester:{SECRET}@host:port/perf") == told


def test_a_writer_waits_for_the_lock_of_writers_for_a_limited_time(server, monkeypatch):
    """Another one holds the lock and does not release it."""
    with History.open(server.database()) as history:
        uid = history.start_run(HARDWARE, {})
        monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
        with history._engine.begin() as holder:
            holder.execute(text("SELECT pg_advisory_xact_lock(:turn)"), {"turn": database.TURN})
            with pytest.raises(HistoryError, match="lock timeout"):
                history.record(uid, make_measurement(), OK)
        history.record(uid, make_measurement(), OK)
        assert len(history.measurements(uid)) == 1


def test_writers_share_the_lock(server, monkeypatch):
    """They add rows of their own runs, and rows that are named by content."""
    target = server.database()
    with History.open(target) as history, History.open(target) as other:
        first, second = history.start_run(HARDWARE, {}), other.start_run(HARDWARE, {})
        history.record(first, make_measurement(), OK)
        monkeypatch.setattr(database, "BUSY_SECONDS", 0.2)
        with database.writing(history._engine, history._name, beside=True):
            for case in (make_case(), make_case("new")):
                other.record(second, make_measurement(case), OK)
            other.record_round(second, make_round(number=2))
            other.finish_run(second, "finished")
        assert sorted(one.case.model for one in other.measurements(second)) == ["new", "resnet50"]


def test_a_silent_writer_loses_the_lock_after_a_short_time(server):
    """Its host may be gone. By itself the server notices that after two hours."""
    target = server.database()
    with History.open(target) as history, History.open(target) as other:
        uid = other.start_run(HARDWARE, {})

        def fall_silent():
            with database.writing(history._engine, history._name, silence=0.3) as connection:
                other.record(uid, make_measurement(), OK)
                connection.execute(text("SELECT 1"))

        with pytest.raises(UnavailableError):
            fall_silent()
        assert len(other.measurements(uid)) == 1


def test_a_reader_sees_a_snapshot(server):
    """Rows that are written meanwhile do not appear."""
    with History.open(server.database()) as history:
        history.start_run(HARDWARE, {})
        counted = text("SELECT count(*) FROM run")
        with database.reading(history._engine, "x") as connection:
            assert connection.execute(counted).scalar_one() == 1
            history.start_run(HARDWARE, {})
            assert connection.execute(counted).scalar_one() == 1


def test_a_command_takes_a_url(server, capsys):
    """Like a file. Commands that only work on a file refuse it in one sentence."""
    target = server.database()
    with History.open(target) as history:
        uid = history.start_run(HARDWARE, {})
        history.record(uid, make_measurement(), OK)
    assert cli.main(["show", uid, "--db", target]) == 0
    assert "resnet50-cpu-bf16-infer-ipex" in capsys.readouterr().out
    assert cli.main(["db", "check", "--db", target]) == 2
    told = capsys.readouterr().err
    assert "is not an SQLite file: use the tools of its database server" in told
    assert "sesame" not in told


def test_a_password_with_a_bare_at_sign_is_refused():
    """Otherwise a part of it would be taken for the host, which the driver names in its errors."""
    with pytest.raises(HistoryError, match="more than one '@': write those of the user and password as %40") as raised:
        url_of("postgresql://me:s@cret@host/perf")
    assert "cret" not in str(raised.value)
