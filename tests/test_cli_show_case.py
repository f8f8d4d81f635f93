"""`ipexperf show RUN CASE`: the differences between what a case ran in two runs, and errors in one sentence."""

import re
from dataclasses import replace
from typing import Any

import pytest
from cli_answers import on_terminal, run
from history_records import ENVIRONMENT, make_case, make_launch, make_measurement

from ipexperf.cli import main
from ipexperf.history import History
from ipexperf.result import Measurement
from ipexperf.verdict import PairsEvidence, SpeedVerdict, Verdict

KEY = ENVIRONMENT["machine_key"]
ID = "resnet50-cpu-bf16-infer-ipex"


def captured(calls: int, seconds: float, version: int = 1) -> dict[str, Any]:
    rows = [{"operator": "aten::clone", "calls": calls, "types": {"float32": calls}, "shapes": "x", "inside": {"": 1}}]
    return {
        "version": version,
        "digest": f"{calls:012d}",
        "structure": {"operators": rows, "flops": 2_000_000_000},
        "times": {"operators": [seconds]},
        "unstable": [],
        "missing": {},
        "unparsed": [],
        "seconds": 0.5,
    }


def measured(
    fingerprint: Any, model: str = "resnet50", batch: int = 16, other: Any = None, knobs: Any = ()
) -> Measurement:
    launches = tuple(replace(make_launch(index, 0.0125), fingerprint=fingerprint, against=other) for index in range(2))
    return make_measurement(make_case(model, batch=batch, knobs=knobs), launches=launches)


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch):
    """From the oldest: as it was, one copy more, none captured, written down in another version."""
    monkeypatch.chdir(tmp_path)
    with History.open("ipexperf.db") as history:
        for day, ran in enumerate((captured(1, 0.001), captured(2, 0.003), None, captured(1, 0.001, version=9)), 1):
            uid = history.start_run(ENVIRONMENT, {"started_at": f"2026-05-0{day}T10:00:00Z"})
            history.record(uid, measured(ran), Verdict("no_baseline", "nothing was accepted"))
            if day == 1:
                history.record(uid, measured(ran, "vgg16"), Verdict("no_baseline", "nothing was accepted"))
                history.record(uid, measured(ran, batch=32), Verdict("no_baseline", "nothing was accepted"))


def refused(capsys, *arguments):
    assert main(["show", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out.count("\n") <= 2
    return captured.err


def test_a_change_is_printed_with_its_share(capsys):
    """A line for each side, then the changes, then what differs only in time."""
    out = run(capsys, "show", "last~2", ID, "--against", "last~3")
    assert out.splitlines()[1] == f"{ID} (batch 16): no baseline"
    assert "\nstep_time   12.5 ms        12.5 ms        12.5 ms        2 " in out
    assert "now     run " in out
    assert "before  run " in out
    assert "000000000002, 2 operator calls, 2.00 GFLOP a step" in out
    assert "structure: changed; the captured step took +2 ms" in out
    assert "1. +1 aten::clone a step (1 -> 2): a copy; 100 % of the time difference" in out


def test_a_run_is_told_without_reading_the_cases_of_another(capsys, monkeypatch):
    """Only what names no run is looked for among the cases of the last one."""
    monkeypatch.setattr(History, "measurements", None)
    assert f"\n{ID} " in run(capsys, "show", "last~3")


@pytest.mark.process
def test_lines_fit_a_terminal_and_stay_indented():
    lines = on_terminal("show", "last~2", ID, "--against", "last~3")
    assert max(map(len, lines)) <= 80
    [now] = (number for number, line in enumerate(lines) if line.startswith("  now     run "))
    assert lines[now + 1].startswith("      ")


def test_a_run_compared_with_itself_has_no_change(capsys):
    """Two batches that share an id are both listed."""
    out = run(capsys, "show", "last~3", ID, "--against", "last~3")
    assert out.count("structure: same") == 2


def test_a_case_that_has_nothing_to_be_compared_with_is_told_all_the_same(capsys):
    """With every number; what is missing is said where the comparison would stand."""
    out = run(capsys, "show", "last~3", ID)
    assert f"structure: compared with nothing: nothing was accepted for {ID} on {KEY}: name a run" in out


def test_a_missing_fingerprint_is_printed_as_unknown(capsys):
    """Also one in another version of the format."""
    out = run(capsys, "show", "last~1", ID, "--against", "last~2")
    assert "structure: unknown, because one of the two has no fingerprint" in out
    assert "have versions 1 and 9" in run(capsys, "show", "last", ID, "--against", "last~2")


def test_a_run_is_compared_with_its_baseline(capsys):
    case = "vgg16-cpu-bf16-infer-ipex"
    run(capsys, "baseline", "accept", "last~3", "--case", case, "--reason", "x", "--by", "ada")
    out = run(capsys, "show", "last~3", case)
    assert "before  baseline, accepted" in out
    assert "by ada" in out
    assert "structure: same" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("last", ID, "--against", "20990101"), "no run matches '20990101'"),
        (("last~3", "vgg16-cpu-bf16-infer-ipex", "--against", "last"), "unknown case"),
    ],
)
def test_an_impossible_comparison_is_one_sentence(capsys, arguments, sentence):
    err = refused(capsys, *arguments)
    assert err.startswith("ipexperf: ")
    assert sentence in err
    assert err.count("\n") == 1


def test_a_case_of_a_pair_is_compared_with_the_other_arm(capsys):
    """Whose fingerprint was recorded beside the case."""
    memory = {"allocations": 4, "allocated": 2**20, "peak": 2**20}
    other = {**captured(1, 0.001), "beside": {"memory": memory}}
    own = {**captured(2, 0.003), "beside": {"memory": {**memory, "allocations": 5}}}
    with History.open("ipexperf.db") as history:
        uid = history.start_run(ENVIRONMENT, {"started_at": "2026-05-09T10:00:00Z"})
        pair = measured(own, other=other, knobs=(("against", "stack=stock"),))
        judged = Verdict("regressed", "", evidence=PairsEvidence("stack=stock"), speed=SpeedVerdict("ok", ""))
        history.record(uid, pair, judged)
    out = run(capsys, "show", pair.case.id)
    assert re.search(r"\nstep_time .* ok *\n", out), "the time did not fail"
    assert "before  the other arm (stack=stock): 000000000001" in out
    assert "1. +1 aten::clone a step (1 -> 2): a copy; 100 % of the time difference" in out
    assert "  memory of a step: 4 -> 5 allocations, 1.00 -> 1.00 MiB in all, 1.00 -> 1.00 MiB at once" in out


def test_a_baseline_without_a_session_in_this_history_is_reported(capsys, tmp_path):
    """The file is in git, and the history is not."""
    run(capsys, "baseline", "accept", "last~3", "--case", ID, "--reason", "x")
    with History.open("other.db") as history:
        uid = history.start_run(ENVIRONMENT, {})
        history.record(uid, measured(captured(1, 0.001)), Verdict("no_baseline", "nothing was accepted"))
    assert "this history has no fingerprint from when" in run(capsys, "show", "last", ID, "--db", "other.db")
