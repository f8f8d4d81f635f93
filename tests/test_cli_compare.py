"""`ipexperf compare`, of two runs and with `--ratios`: what it prints, in each form, and how they end."""

import csv
import io
import json
import re

import pytest
from cli_answers import run
from history_records import ENVIRONMENT, make_case, make_launch, make_measurement

from ipexperf.history import History
from ipexperf.result import RoundRecord, SeatRecord
from ipexperf.verdict import Verdict

OLDER, NEWER = ({**ENVIRONMENT, "hardware": {"kernel": kernel}} for kernel in ("6.1", "6.2"))
IPEX, STOCK = (make_case(dtype="fp32", stack=stack) for stack in ("ipex", "stock"))


def measured(environment, case, step):
    launches = tuple(make_launch(number, step + number * 1e-5, accuracy=0.94) for number in range(3))
    return make_measurement(case, launches=launches, environment=environment)


def take_turns(twin=0.01):
    """Give the newest run three rounds, in which IPEX was three times as fast, and stock has a twin."""
    with History.open("ipexperf.db") as history:
        uid = history.find_run("last").uid
        for number in (1, 2, 3):
            arms = [(STOCK, "case", 0.03), (STOCK, "twin", 0.03 * (1 + twin * (number - 2))), (IPEX, "case", 0.01)]
            seats = tuple(SeatRecord(case, role, ((step,) * 8,), 0) for case, role, step in arms)
            moment = f"2026-05-02T10:0{number}:00Z"
            history.record_round(uid, RoundRecord(f"{number:032x}", "all", number, "together", seats, moment, 9.0, 8))


@pytest.fixture(autouse=True)
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with History.open("ipexperf.db") as history:
        for day, environment, step in ((1, OLDER, 0.010), (2, NEWER, 0.012)):
            uid = history.start_run(environment, {"started_at": f"2026-05-0{day}T10:00:00Z"})
            for case, times in ((STOCK, 2), (IPEX, 1)):
                history.record(uid, measured(environment, case, step * times), Verdict("ok", "within the noise"))
    return tmp_path / "ipexperf.db"


def test_compare_tells_what_differs_and_how_much(capsys):
    """Both runs, the kernel that changed, and a line for each case."""
    out = run(capsys, "compare", "last~1", "last")
    assert "differs  kernel: 6.1 -> 6.2" in out
    lines = [line.split() for line in out.splitlines() if line.startswith("resnet50")]
    assert [line[0] for line in lines] == ["resnet50-cpu-fp32-infer-ipex", "resnet50-cpu-fp32-infer-stock"]
    assert lines[0][6] == "1.200"
    assert "worse" in lines[0]
    assert "94.0" in lines[0]
    assert "else over launches, all together" in out


def test_compare_speaks_json_and_csv(capsys):
    """The same cases in full, and one row each."""
    document = json.loads(run(capsys, "compare", "last~1", "--json"))
    assert [case["change"] for case in document["cases"]] == ["worse", "worse"]
    assert document["differences"] == ["kernel: 6.1 -> 6.2"]
    rows = list(csv.DictReader(io.StringIO(run(capsys, "compare", "last~1", "--csv", "--metric", "throughput"))))
    assert [row["change"] for row in rows] == ["worse", "worse"]
    assert float(rows[0]["ratio"]) == pytest.approx(1 / 1.2, rel=1e-3)


def test_speedup_tells_what_the_stack_is_worth(capsys):
    """IPEX over stock from one recorded run, with its interval."""
    out = run(capsys, "compare", "--ratios")
    (line,) = [line.split() for line in out.splitlines() if line.strip().startswith("resnet50")]
    assert "2.00" in line
    (row,) = csv.DictReader(io.StringIO(run(capsys, "compare", "--ratios", "last~1", "--csv")))
    assert (row["over"], row["base_id"]) == ("ipex over stock", "resnet50-cpu-fp32-infer-stock")
    assert float(row["lo"]) < float(row["speedup"]) < float(row["hi"])


def test_speedup_tells_what_turns_are_worth(capsys):
    """The ratio of the rounds with an interval of its own, how it is known, and what the same again was."""
    take_turns()
    out = run(capsys, "compare", "--ratios")
    (line,) = [line for line in out.splitlines() if line.startswith("resnet50-cpu-fp32-infer-ipex  ")]
    assert "3.00" in line
    assert "\nresnet50-cpu-fp32-infer-ipex: 3 rounds\n" in out
    assert "over rounds, in which both cases took turns, each by itself, where the note names rounds" in out
    (twin,) = [line for line in out.splitlines() if "the same again" in line]
    assert twin.startswith("resnet50-cpu-fp32-infer-stock, batch 16, the same again: 1.000 (0.9")
    assert twin.endswith("), 3 rounds")
    (row,) = csv.DictReader(io.StringIO(run(capsys, "compare", "--ratios", "--csv")))
    assert (row["paired"], row["rounds"]) == ("True", "3")
    assert float(row["lo"]) < 3 < float(row["hi"])
    (older,) = json.loads(run(capsys, "compare", "--ratios", "last~1", "--json"))
    assert (older["paired"], older["rounds"]) == (False, 0)


def test_a_twin_beyond_doubt_says_that_its_group_is_not_to_be_believed(capsys):
    """Something favours one process over another."""
    with History.open("ipexperf.db") as history:
        for number in (1, 2, 3, 4):
            seats = tuple(SeatRecord(STOCK, role, ((step,) * 8,)) for role, step in (("case", 0.01), ("twin", 0.012)))
            one = RoundRecord(f"{number:032x}", "all", number, "together", seats, "2026-05-02T10:00:00Z", 9.0, 8)
            history.record_round(history.find_run("last").uid, one)
    (line,) = [line for line in run(capsys, "compare", "--ratios").splitlines() if "the same again: 0.833 (" in line]
    assert line.endswith("), 4 rounds: that is not noise: do not trust the ratios of its group")
    assert "DO NOT TRUST THE RATIOS" in run(capsys, "show", "last")


def test_show_tells_the_rounds(capsys):
    """The twin below its case, as the run's own summary does, and every turn as JSON."""
    assert "the same again" not in run(capsys, "show", "last")
    take_turns()
    assert re.search(r"\n  the same again \(A/A twin\) +1\.000 \(", run(capsys, "show", "last"))
    first, *_ = json.loads(run(capsys, "show", "last", "--json"))["rounds"]
    assert [seat["role"] for seat in first["seats"]] == ["case", "twin", "case"]
    assert first["seats"][2]["times"] == [[0.01] * 8]


def test_speedup_without_a_pair_says_what_is_missing(capsys):
    """No row, no number, and what to do."""
    out = run(capsys, "compare", "--ratios", "--over", "dtype")
    assert out == "No two sound cases differ only in a dtype, a stack or a device: name more runs, or measure both.\n"
    assert run(capsys, "compare", "--ratios", "--over", "dtype", "--csv") == ""
