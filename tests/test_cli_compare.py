"""`ipexperf compare` and `ipexperf speedup`: what they print, in each form, and how they end."""

from __future__ import annotations

import csv
import io
import json

import pytest
from cli_answers import refused, run

from ipexperf.case import Case
from ipexperf.cli import main
from ipexperf.history import History
from ipexperf.result import Launch, Measurement, Verdict

ENVIRONMENT = {
    "machine_key": "xeon-8480-2s",
    "software": {"torch": "2.8.0+cpu", "ipex": "2.8.0+cpu"},
    "git": {"commit": "a1b2c3d4e5f6", "branch": "main"},
}
NEWER = {**ENVIRONMENT, "software": {"torch": "2.9.0+cpu", "ipex": "2.8.0+cpu"}}


def measured(environment, stack, step):
    case = Case(model="resnet50", device="cpu", dtype="fp32", mode="infer", stack=stack, batch=16, size=224)
    launches = tuple(
        Launch(i, "ok", metrics={"step_time": step + i * 1e-5, "throughput": 16 / (step + i * 1e-5), "accuracy": 0.94})
        for i in range(3)
    )
    moment = "2026-05-04T10:00:00Z"
    return Measurement(case, launches, environment, started_at=moment, finished_at=moment)


@pytest.fixture(autouse=True)
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("IPEXPERF_DB", raising=False)
    with History.open("ipexperf.db") as history:
        for day, environment, step in ((1, ENVIRONMENT, 0.010), (2, NEWER, 0.012)):
            uid = history.start_run(environment, {"started_at": f"2026-05-0{day}T10:00:00Z"})
            for stack, times in (("stock", 2), ("ipex", 1)):
                history.record(uid, measured(environment, stack, step * times), Verdict("ok", "within the noise"))
    return tmp_path / "ipexperf.db"


def test_compare_tells_what_differs_and_how_much(capsys):
    """Both runs, the versions that changed, and a line for each case."""
    out = run(capsys, "compare", "last~1", "last")
    assert "differs  torch: 2.8.0+cpu -> 2.9.0+cpu" in out
    lines = [line.split() for line in out.splitlines() if line.strip().startswith("resnet50")]
    assert [line[0] for line in lines] == ["resnet50-cpu-fp32-infer-ipex", "resnet50-cpu-fp32-infer-stock"]
    assert lines[0][6] == "1.200"
    assert "worse" in lines[0]
    assert "94.0%" in lines[0]
    assert "Intervals are over launches" in out


def test_compare_speaks_json_and_csv(capsys):
    """The same cases in full, and one row each."""
    document = json.loads(run(capsys, "compare", "last~1", "--json"))
    assert [case["change"] for case in document["cases"]] == ["worse", "worse"]
    assert document["differences"] == ["torch: 2.8.0+cpu -> 2.9.0+cpu"]
    rows = list(csv.DictReader(io.StringIO(run(capsys, "compare", "last~1", "--csv", "--metric", "throughput"))))
    assert [row["change"] for row in rows] == ["worse", "worse"]
    assert float(rows[0]["ratio"]) == pytest.approx(1 / 1.2, rel=1e-3)


def test_speedup_tells_what_the_stack_is_worth(capsys):
    """IPEX over stock from one recorded run, with its interval."""
    out = run(capsys, "speedup")
    (line,) = [line.split() for line in out.splitlines() if line.strip().startswith("resnet50")]
    assert "2.00" in line
    (row,) = csv.DictReader(io.StringIO(run(capsys, "speedup", "last~1", "--csv")))
    assert (row["over"], row["base_id"]) == ("ipex over stock", "resnet50-cpu-fp32-infer-stock")
    assert float(row["lo"]) < float(row["speedup"]) < float(row["hi"])


def test_speedup_without_a_pair_says_what_is_missing(capsys):
    """No row, no number, and what to do."""
    out = run(capsys, "speedup", "--over", "dtype")
    assert out == "No two sound cases differ in a dtype, a stack or a device alone: name more runs, or measure both.\n"
    assert run(capsys, "speedup", "--over", "dtype", "--csv") == ""


def test_a_run_is_not_compared_with_itself(capsys):
    """The likeliest mistake, one name twice, would look like a history without changes."""
    assert "are the same run" in refused(capsys, "compare", "last")
    assert "no run matches 'zzzz'" in refused(capsys, "compare", "last", "zzzz")


def test_json_and_csv_at_once_is_a_mistake(capsys):
    """One answer has one form."""
    with pytest.raises(SystemExit) as raised:
        main(["compare", "last~1", "--json", "--csv"])
    assert raised.value.code == 2
    assert "not allowed with argument" in capsys.readouterr().err
