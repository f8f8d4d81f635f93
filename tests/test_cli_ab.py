"""`ipexperf ab` refuses impossible arms before it measures anything, and records and prints the result."""

import dataclasses
import json
import math
import random
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fake_rounds import played

import ipexperf.run  # noqa: F401 - a room that keeps ask_facts by name, before a test replaces it
from ipexperf import cli
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import NetworkCase
from ipexperf.compare.arm import Arm
from ipexperf.conduct import worker
from ipexperf.errors import WorkerError
from ipexperf.history import History
from ipexperf.plan.arms import parse
from ipexperf.result import Check

pytestmark = pytest.mark.process


OF_SPEED = "SELECT outcome FROM verdict v JOIN series s ON s.id = v.series_id WHERE s.metric = 'step_time'"
CELL = ("--model", "tiny", "--device", "fake", "--dtype", "fp32", "--mode", "spin", "--stack", "plain")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test in a folder of its own, where the history is written."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arm", "refusal"),
    [
        (("--a", "dtype=fp17"), "arm a: unknown dtype 'fp17': did you mean fp16?"),
        (("--b", "stack=stock"), "arm b: tiny-fake-fp32-spin-stock cannot run: "),
        (
            ("--b", "weight_prepack=off"),
            "arm b 'weight_prepack=off': unknown axis or knob 'weight_prepack': did you mean",
        ),
        (
            ("--b", "weights_prepack=off"),
            "arm b: tiny-fake-fp32-spin-plain+weights_prepack:off cannot run: neither spin nor plain has a knob",
        ),
    ],
)
def test_an_arm_with_a_wrong_name_or_a_case_that_cannot_run_is_refused(
    fake: str, arm: tuple[str, str], refusal: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one sentence, which names the arm."""
    nothing = Facts("/env/bin/python", {})
    monkeypatch.setattr(worker, "ask_facts", lambda *_, **__: nothing)
    assert cli.main(["ab", f"--perf-load={fake}", *CELL, *arm]) == cli.USAGE_ERROR
    assert capsys.readouterr().err.startswith(f"ipexperf: {refusal}")


PACKAGES = {"torch": "2.8.0", "torchvision": "0.23.0", "intel-extension-for-pytorch": "2.8.0"}
HERE = Facts("/env/bin/python", PACKAGES, frozenset({"avx2", "fma"}))
CASE = NetworkCase("resnet18", "cpu", "fp32", "infer_jit", "ipex", 32, 32, 1, "digits")


@pytest.mark.parametrize(
    ("arm", "turned"),
    [
        ("level=O0", "+level:O0"),
        ("level=O0 conv_bn_folding=on", "+conv_bn_folding:on+level:O0"),
        ("weights_prepack=on", ""),
        ("mode=infer ONEDNN_VERBOSE=0", None),
    ],
)
def test_an_arm_may_set_knobs(arm: str, turned: str | None) -> None:
    """The case's id has them, except those that are set to their default."""
    case, reason = parse(arm, "arm a").case(CASE, HERE)
    assert reason is None
    assert case.id == (CASE.id.replace("infer_jit", "infer") if turned is None else CASE.id + turned)
    assert case.inputs == {"batch": 32, "size": 32, "data": "digits"}


def test_an_arm_resets_a_planned_knob_and_keeps_the_placement() -> None:
    """What --perf-knobs sets holds for both arms, unless an arm sets something else."""
    planned = dataclasses.replace(CASE, knobs=(("level", "O0"), ("placement", "cores=0")))
    assert parse("", "arm a").case(planned, HERE) == (planned, None)
    assert parse("level=O1", "arm a").case(planned, HERE)[0].knobs == (("placement", "cores=0"),)


@pytest.mark.parametrize(
    ("arm", "refusal"),
    [
        ("level=O7", "expected one of O1, O0, got 'O7'"),
        ("graph_mode=on", "infer_jit has no knob graph_mode"),
        ("stack=stock level=O0", "neither infer_jit nor stock has a knob level"),
    ],
)
def test_a_knob_that_an_arm_cannot_have_is_refused_with_the_reason(arm: str, refusal: str) -> None:
    """As in the plan: an unknown value, and a knob that the arm's mode and stack do not have."""
    reason = parse(arm, "arm a").case(CASE, HERE)[1]
    assert reason is not None
    assert refusal in reason


def test_words_of_an_arm_are_an_interpreter_variables_knobs_or_axes() -> None:
    words = parse("python=/bin/sh OMP_NUM_THREADS=1 weights_prepack=off dtype=bf16", "arm a")
    assert words.python == parse("/bin/sh", "arm a").python == "/bin/sh"
    assert dict(words.variables) == {"OMP_NUM_THREADS": "1"}
    assert dict(words.knobs) == {"weights_prepack": "off"}
    assert dict(words.axes) == {"dtype": "bf16"}


def test_a_mode_that_is_timed_once_per_process_is_refused(fake: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its workers cannot take turns."""
    cold = Path(__file__).parent / "fakes" / "cold.py"
    cell = [word.replace("spin", "start") for word in CELL]
    assert cli.main(["ab", f"--perf-load={fake}", f"--perf-load={cold}", *cell]) == cli.USAGE_ERROR
    reason = "start is timed once per process, but the workers of a pair take many turns"
    assert capsys.readouterr().err == f"ipexperf: arm a: tiny-fake-fp32-start-plain cannot run: {reason}\n"


def let_b_take(monkeypatch: pytest.MonkeyPatch, seconds: float, *checks: Check) -> list[list[Arm]]:
    """Replace all measurements: a takes a second, and b about this long, with these checks. Return the rounds' arms."""
    chance = random.Random(3)  # noqa: S311 - a simulation, no secret

    def time(arm: Arm) -> float:
        return seconds * math.exp(chance.gauss(0, 0.002)) if arm.name == "arm b" else 1.0

    return played(monkeypatch, time, wrong={"arm b": checks})


def test_ab_prints_the_ratio_why_it_stopped_and_what_differs(
    fake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slowdown of a fifth with little noise is decided at the first look."""
    let_b_take(monkeypatch, 1.2)
    arguments = ["ab", f"--perf-load={fake}", *CELL, "--b", "dtype=bf16 OMP_NUM_THREADS=1", "--tolerance", "10%"]
    assert cli.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"b against a: regressed: [\d.]+ % slower: 1.00 -> 1.\d\d s \(\+[\d.]+ to .*; 4 pairs\)", lines[0]
    )
    assert lines[1] == "a  tiny-fake-fp32-spin-plain [as it is]"
    assert lines[2] == "b  tiny-fake-bf16-spin-plain [dtype=bf16 OMP_NUM_THREADS=1]"
    assert lines[3:5] == ["differs  dtype: fp32 -> bf16", "differs  OMP_NUM_THREADS: as it is -> 1"]
    assert lines[5:] == ["stopped: it was decided after 4 of at most 24 pairs"]


def test_the_headline_of_ab_is_what_decided(
    fake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory alone decides that the case is regressed. The run is recorded as one of ab."""
    played(
        monkeypatch, lambda _: 1.0, beside=lambda arm: {"peak_memory": 2.0**30 * (1.5 if arm.name == "arm b" else 1)}
    )
    gate = ("--perf-gate", "step_time,peak_memory")
    assert cli.main(["ab", f"--perf-load={fake}", *CELL, "--b", "dtype=bf16", "--fail", *gate]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("b against a: regressed: 50.0 % more peak_memory: 1.00 -> 1.50 GiB (")
    with History.open("ipexperf.db", create=False) as history:
        assert history.find_run("last").meta["subcommand"] == "ab"


def test_ab_says_that_its_arms_are_the_same(
    fake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    let_b_take(monkeypatch, 1.0)
    assert (
        cli.main(["ab", f"--perf-load={fake}", *CELL, "--a", "dtype=fp32", "--max-pairs", "2", "--budget", "60"]) == 0
    )
    output = capsys.readouterr().out
    assert "; both arms are the same (A/A)\n" in output
    assert "2 pairs" in output
    assert "differs" not in output


def test_a_wrong_arm_ends_ab(fake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """However fast it is: one sentence with the failed check, and exit code 2."""
    let_b_take(monkeypatch, 0.1, Check("dtype", ok=False, found="float32", expected="bf16"))
    assert cli.main(["ab", f"--perf-load={fake}", *CELL, "--b", "dtype=bf16"]) == cli.USAGE_ERROR
    output, errors = capsys.readouterr()
    assert errors.endswith("ipexperf: arm b: dtype: found float32, expected bf16\n")
    assert output == ""


def output_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The output of another command, which reads the history."""
    assert cli.main(arguments) == 0
    return capsys.readouterr().out


def rows(question: str) -> list[tuple[Any, ...]]:
    """The rows that a query of the history returns."""
    with closing(sqlite3.connect("file:ipexperf.db?mode=ro", uri=True)) as connection:
        return connection.execute(question).fetchall()


B = "OMP_NUM_THREADS=1"
ID = "tiny-fake-fp32-spin-plain"
BOTH = (CELL[0], "tiny,other", *CELL[2:])


def test_ab_records_a_run_in_the_history(
    fake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`show last` shows it with its verdict. It has a series of its own, and the command that made it."""
    let_b_take(monkeypatch, 1.2)
    monkeypatch.setattr(sys, "argv", ["ipexperf", "ab", "--b", B])
    assert cli.main(["ab", f"--perf-load={fake}", *CELL, "--b", B]) == 0
    capsys.readouterr()
    shown = output_of(capsys, "show", "last")
    assert ID in shown
    assert "regressed" in shown
    assert rows("SELECT status, json_extract(meta, '$.command') FROM run") == [
        ("finished", f'["ipexperf","ab","--b","{B}"]')
    ]
    query = "SELECT DISTINCT json_extract(params, '$.knobs.against') FROM launch JOIN 'case' ON \"case\".id = case_id"
    assert rows(query) == [("itself",)]
    assert rows("SELECT count(*) FROM launch") == [(4,)]
    assert rows("SELECT DISTINCT name FROM round") == [("tiny fake infer 1x1 none against itself",)]
    assert rows("SELECT number FROM round ORDER BY id") == [(1,), (2,), (3,), (4,)]
    assert rows("SELECT role, launch FROM seat WHERE round_id = 1 ORDER BY place") == [("against", None), ("case", 0)]
    assert rows("SELECT launch FROM seat WHERE role = 'case' ORDER BY round_id, place") == [(0,), (1,), (2,), (3,)]

    assert rows("SELECT DISTINCT base_role, role, round(exp(log_ratio), 1) FROM paired") == [("against", "case", 1.2)]


def test_ab_answers_in_json(fake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One document with a comparison for each case, and nothing else on standard output."""
    let_b_take(monkeypatch, 1.2)
    assert cli.main(["ab", f"--perf-load={fake}", *BOTH, "--b", B, "--json"]) == 0
    comparisons = json.loads(capsys.readouterr().out)
    assert [comparison["b"] for comparison in comparisons] == [ID, ID.replace("tiny", "other")]
    for comparison in comparisons:
        assert comparison["outcome"] == "regressed"
        assert comparison["differences"] == ["OMP_NUM_THREADS: as it is -> 1"]
        assert 1.15 < comparison["lo"] < comparison["ratio"] < comparison["hi"] < 1.25
        assert len(comparison["log_ratios"]) == comparison["stop"]["rounds"] == 4
        assert (comparison["stop"]["why"], comparison["apart"]) == ("decided", False)


@pytest.mark.parametrize(("slower", "status"), [(1.2, 1), (0.8, 0)])
def test_ab_with_fail_exits_with_1_if_b_is_slower(
    fake: str, slower: float, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --fail, and if b is faster, it exits with 0."""
    let_b_take(monkeypatch, slower)
    arguments = ["ab", f"--perf-load={fake}", *CELL, "--b", B]
    assert cli.main([*arguments, "--fail"]) == status
    assert cli.main(arguments) == 0


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_an_arm_that_fails_in_the_third_pair_keeps_the_pairs_before(
    fake: str, options: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are printed and recorded, the other case goes on, and the command ends with 2 and one sentence."""
    turns = iter(range(100))

    def time(arm: Arm) -> float:
        if arm.case.axes["dtype"] == "fp32" and arm.name == "arm b" and next(turns) == 2:
            raise WorkerError("crashed", "killed by SIGSEGV")
        return 1.0

    played(monkeypatch, time)
    cell = [word if word != "fp32" else "fp32,bf16" for word in CELL]
    arguments = ["ab", f"--perf-load={fake}", *cell, "--b", B, *options]
    assert cli.main(arguments) == cli.USAGE_ERROR
    out, err = capsys.readouterr()
    assert err.endswith("ipexperf: crashed: arm b: killed by SIGSEGV\n")
    if options:
        failed, other = json.loads(out)
        assert (failed["outcome"], failed["stop"]["why"], len(failed["log_ratios"])) == ("failed", "failed", 2)
        assert (failed["ratio"], failed["sentence"]) == (1.0, "crashed: arm b: killed by SIGSEGV")
        assert other["outcome"] == "ok"
    else:
        assert "before that: at most 0." in out.partition("stopped: an arm failed")[0]
        assert "no pair was measured" not in out
    assert rows("SELECT outcome FROM launch WHERE outcome != 'ok'") == [("crashed",)]
    assert sorted(rows(OF_SPEED)) == [("failed",), ("ok",)]


def test_an_interrupted_ab_prints_and_records_the_pairs_before(
    fake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the third pair. Two pairs prove nothing, so the verdict is inconclusive.

    They are recorded before it begins, so that a killed `ab` has them too.
    """
    times = iter((1.0, 1.4))

    def time(arm: Arm) -> float:
        if arm.name == "arm a":
            return 1.0
        if (seconds := next(times, None)) is None:
            assert rows("SELECT outcome FROM launch") == [("ok",)] * 2
            raise KeyboardInterrupt
        return seconds

    played(monkeypatch, time)
    assert cli.main(["ab", f"--perf-load={fake}", *CELL, "--b", B]) == cli.INTERRUPTED
    output = capsys.readouterr().out
    assert "stopped: interrupted after 2 pairs" in output
    assert output.startswith("b against a: inconclusive: could not tell: 18")
    assert rows("SELECT status FROM run") == [("interrupted",)]
    assert rows("SELECT outcome FROM launch") == [("ok",)] * 2
    assert rows(OF_SPEED) == [("inconclusive",)]
