"""Functions in a history: they have no model, dtype, stack or batch, and nothing that asks for these finds them."""

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from history_records import ENVIRONMENT, OK, make_case, make_measurement

from ipexperf import cli
from ipexperf.case import Case, FunctionCase
from ipexperf.history import History, frame
from ipexperf.result import PRIMARY

TEST = "tests/test_sort.py::test_sort[1,2]"
FUNCTION = FunctionCase(TEST, "cpu")
COUNTS = {"": 2, "--device cpu": 2, f"--test {TEST}": 2, f"--model {TEST}": 0, "--dtype fp32": 0, "--stack stock": 0}
"""How many points of the function a trend has with these filters."""
LACKING = ("model", "dtype", "mode", "stack", "batch", "size", "version", "data")


def recorded(folder: Path, *cases: Case) -> str:
    """A history of two runs of these cases."""
    path = folder / "history.db"
    with History.open(path) as history:
        for day in (1, 2):
            uid = history.start_run(ENVIRONMENT, {"started_at": f"2026-05-0{day}T08:00:00Z"})
            for case in cases:
                history.record(uid, make_measurement(case), OK)
            history.finish_run(uid, "finished")
    return str(path)


@pytest.fixture
def functions(tmp_path: Path) -> str:
    """A history of a function alone."""
    return recorded(tmp_path, FUNCTION)


def test_what_a_function_lacks_is_null(functions: str) -> None:
    with closing(sqlite3.connect(functions)) as connection:
        [row] = connection.execute('SELECT test, model, device, dtype, mode, stack, batch, version, params FROM "case"')
    assert row == (TEST, None, "cpu", None, None, None, None, None, "{}")
    with History.open(functions) as history:
        assert [one.case for one in history.measurements("last")] == [FUNCTION]


@pytest.mark.parametrize(("asked", "count"), COUNTS.items())
def test_a_trend_has_a_function_where_it_has_what_was_asked_for(
    functions: str, asked: str, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["trend", "--db", functions, *asked.split(), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == count


@pytest.mark.parametrize("command", ["show last", "compare last~1 last", "trend", "report"])
def test_a_table_of_functions_alone_has_no_columns_of_networks(
    functions: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command.split(), "--db", functions, "--csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert TEST in (rows[0].get("case_id"), rows[0].get("test"))
    assert rows[0]["device"] == "cpu"
    assert not rows[0].keys() & set(LACKING)
    if command != "report":
        assert cli.main([*command.split(), "--db", functions]) == 0
        assert not {"batch", "throughput"} & set(capsys.readouterr().out.split())


def test_beside_networks_a_function_has_nothing_in_their_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And a batch stays a whole number, although pandas knows no missing ones."""
    both = recorded(tmp_path, FUNCTION, make_case())
    for table in (frame.trend(both, PRIMARY), frame.show(both)):
        batches = table.set_index("case_uid")["batch"].drop_duplicates()
        assert batches[make_case().uid] == 16
        assert pd.isna(batches[FUNCTION.uid])
    assert cli.main(["report", "--db", both, "--csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert {row["test"]: (row["model"], row["batch"], row["size"], row["dtype"]) for row in rows} == {
        "": ("resnet50", "16", "224", "bf16"),
        TEST: ("", "", "", ""),
    }
    assert cli.main(["show", "last", "--db", both]) == 0
    network, function = (line.split() for line in capsys.readouterr().out.splitlines() if " ms" in line)
    assert (network[1], function[:2]) == ("16", [TEST, "11.0"])
