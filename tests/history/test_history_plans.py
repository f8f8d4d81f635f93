"""The query plans of SQLite for the larger statements."""

from __future__ import annotations

import pytest
from history_records import ENVIRONMENT, OK, make_measurement

from ipexperf.history import History, rounds, schema, statements


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    with History.open(tmp_path_factory.mktemp("plans") / "history.db") as opened:
        uid = opened.start_run(ENVIRONMENT, {})
        opened.record(uid, make_measurement(), OK)
        yield opened


def plan(history, statement):
    with history._engine.connect() as connection:
        text = str(statement.compile(connection, compile_kwargs={"literal_binds": True}))
        return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}")]


@pytest.mark.parametrize("limit", [None, 30])
@pytest.mark.parametrize("filters", [{}, {"branch": "main", "mode": ["infer", "train"], "since": "2026-05-01"}])
def test_a_trend_uses_indexes(history, limit, filters):
    """Without the indexes on case and series a trend took two minutes. No table is scanned."""
    lines = plan(history, statements.trend(limit=limit, metric="step_time", model="resnet50", **filters))
    tables = ("case", "series", "measurement", "run", "verdict", "later")
    assert not [line for line in lines if line.startswith("SCAN") and line.split()[1] in tables], lines
    assert any(line.startswith("SEARCH series USING INDEX ix_series_case_id") for line in lines), lines
    assert any(line.startswith("SEARCH case USING INDEX ix_case_model_mode") for line in lines), lines


def test_a_board_is_read_series_by_series(history):
    """A join with the series would read all measurements in the order of runs, from pages all over the file."""
    lines = plan(history, statements.facts("median", metric=["step_time", "peak_memory"]))
    assert any("SEARCH measurement USING PRIMARY KEY (series_id=?)" in line for line in lines), lines


def test_rejected_runs_are_read_series_by_series(history):
    """By run they would be searched among the verdicts of all series."""
    lines = plan(history, statements.rejected(7, model="resnet50"))
    assert any("SEARCH verdict USING INDEX sqlite_autoindex_verdict_1 (series_id=?" in line for line in lines), lines


@pytest.mark.parametrize("before", [None, "2026-05-03"])
def test_the_newest_runs_with_rounds_of_a_machine_are_found_by_indexes(history, before):
    """They are read from the newest on until there are enough."""
    lines = plan(history, rounds.runs_of("xeon-8480-2s", 5, before))
    assert any(" run USING INDEX ix_run_started_at" in line for line in lines), lines
    assert any("SEARCH round USING INDEX ix_round_" in line for line in lines), lines
    assert any("SEARCH environment USING" in line and "ix_environment_machine_key" in line for line in lines), lines
    # But for runs that began in the same microsecond nothing is put in order.
    assert "USE TEMP B-TREE FOR ORDER BY" not in lines


@pytest.mark.parametrize("ask", [rounds.rounds_of, rounds.seats_of])
@pytest.mark.parametrize("machine", [None, "xeon-8480-2s"])
def test_the_rounds_of_runs_use_indexes(history, ask, machine):
    """Neither the rounds nor the seats are scanned."""
    where = [schema.round_.c.run_id.in_([1, 2])]
    if machine is not None:
        where.append(schema.environment.c.machine_key == machine)
    lines = plan(history, ask(*where))
    tables = ("round", "seat", "case", "environment")
    assert not [line for line in lines if line.startswith("SCAN") and line.split()[1] in tables], lines
