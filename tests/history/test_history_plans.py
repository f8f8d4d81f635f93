"""The query plans of SQLite for the larger statements."""

import pytest
from history_records import ENVIRONMENT, OK, make_measurement

from ipexperf.history import History, statements


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
