"""`ipexperf report`: pages, CSV, markdown, JSON, and every history that no report can be made of."""

import csv
import dataclasses
import io
import json
import re
import sqlite3
from contextlib import closing

import pytest
from cli_answers import refused, run
from history_records import CRASHED, ENVIRONMENT, OK, make_case, make_measurement, make_round, make_seat

from ipexperf.history import History
from ipexperf.result import Launch
from ipexperf.verdict import Verdict

CASE = make_case()


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with History.open("ipexperf.db") as history:
        uid = history.start_run(ENVIRONMENT, {"started_at": "2026-05-01T10:00:00Z"})
        history.record(uid, make_measurement(steps=(0.0125,)), Verdict("ok", "within the noise"))
        history.finish_run(uid, "finished")
    return tmp_path / "ipexperf.db"


def test_it_writes_pages_and_says_where(path, capsys):
    """And once more over the older report."""
    for _ in range(2):
        assert run(capsys, "report", "--html", "site") == "site/index.html: 1 case of 1 run\n"
        assert (path.parent / "site" / "index.html").is_file()


def test_it_prints_a_run_as_markdown(path, capsys):
    """A table that any forge shows."""
    out = run(capsys, "report", "--markdown")
    assert out.startswith("## ipexperf: 1 ok\n")
    assert "| 🟢 | `resnet50-cpu-bf16-infer-ipex` | 16 | 12.5 ms | 1,280 | - | ok |" in out


def test_markdown_has_the_factors_of_cases_that_took_turns(path, capsys):
    """With the interval that rounds give; the plain case is 1, and one that failed has none."""
    plain = dataclasses.replace(CASE, dtype="fp32", stack="stock")
    broken = dataclasses.replace(CASE, dtype="fp16")
    with History.open("ipexperf.db") as history:
        uid = history.start_run(ENVIRONMENT, {"started_at": "2026-05-02T10:00:00Z"})
        for case, step in ((plain, 0.05), (CASE, 0.0125)):
            history.record(uid, make_measurement(case, (step,)), OK)
        history.record(uid, make_measurement(broken, launches=(CRASHED,)), Verdict("failed", "as told"))
        seats = (make_seat(plain, 0.05), make_seat(CASE, 0.0125), make_seat(broken, 0.01))
        for number in range(3):
            history.record_round(uid, make_round(*seats, number=number))
        history.finish_run(uid, "finished")
    out = run(capsys, "report", "--markdown")
    assert "| | case | batch | step | items/s | x fp32 | time vs baseline | verdict |" in out
    [line] = [line for line in out.splitlines() if f"`{CASE.id}`" in line]
    assert re.search(r"\| 4\.00 \(3\.\d+ to 4\.\d+\) \|", line)
    for other, factor in ((plain, "1.00"), (broken, "-")):
        assert [cells.split(" | ")[5] for cells in out.splitlines() if f"| `{other.id}`" in cells] == [factor]


def test_csv_has_every_point_of_every_run(path, capsys):
    """Of all metrics, oldest first."""
    with History.open("ipexperf.db") as history:
        uid = history.start_run(ENVIRONMENT, {"started_at": "2026-05-02T10:00:00Z"})
        launch = Launch(0, "ok", metrics={"step_time": 0.01, "throughput": 1600.0})
        history.record(uid, make_measurement(launches=(launch,)), Verdict("ok", "within the noise"))
        history.finish_run(uid, "finished")
    rows = list(csv.DictReader(io.StringIO(run(capsys, "report", "--csv"))))
    assert {(row["metric"], row["median"]) for row in rows[:2]} == {("step_time", "0.0125"), ("throughput", "1280.0")}
    assert {(row["metric"], row["median"]) for row in rows[2:]} == {("step_time", "0.01"), ("throughput", "1600.0")}


def test_pytest_benchmark_has_one_run(path, capsys):
    """The last, if none is named. What pytest-benchmark reads of it: `test_history_exports.py`."""
    out = run(capsys, "report", "--pytest-benchmark")
    assert [case["stats"]["data"] for case in json.loads(out)["benchmarks"]] == [[0.0125]]
    assert run(capsys, "report", "first", "--pytest-benchmark") == out


def test_runs_without_an_environment_are_a_damaged_history(path, capsys):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM environment")
    assert "the history is damaged: its runs lack their environments" in refused(capsys, "report", "--html", "site")
