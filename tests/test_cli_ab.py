"""`ipexperf ab` refuses an arm that cannot be before anything is measured, and records and tells what it found."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from fake_rounds import played

import ipexperf.run  # noqa: F401 - a room that keeps ask_facts by name, before a test replaces it
from ipexperf import cli
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import Case
from ipexperf.conduct import worker
from ipexperf.errors import WorkerError
from ipexperf.plan.arms import parse
from ipexperf.result import Check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ipexperf.compare.arm import Arm

pytestmark = pytest.mark.process


OF_SPEED = "SELECT outcome FROM verdict v JOIN series s ON s.id = v.series_id WHERE s.metric = 'step_time'"
CELL = ("--model", "tiny", "--device", "fake", "--dtype", "fp32", "--mode", "spin", "--stack", "plain")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is recorded is recorded in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arm", "told"),
    [
        (("--b", "device=gpu"), "arm b: unknown device 'gpu': did you mean cuda or xpu?"),
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
def test_an_arm_that_cannot_be_is_refused(
    fake: str, arm: tuple[str, str], told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong name in an arm, or a case that cannot run, is one sentence that names the arm."""
    nothing = Facts("/env/bin/python", {})
    monkeypatch.setattr(worker, "ask_facts", lambda *_: nothing)
    assert cli.main(["ab", f"--perf-load={fake}", *CELL, *arm]) == cli.USAGE_ERROR
    assert capsys.readouterr().err.startswith(f"ipexperf: {told}")


PACKAGES = {"torch": "2.8.0", "torchvision": "0.23.0", "intel-extension-for-pytorch": "2.8.0", "scikit-learn": "1.7"}
HERE = Facts("/env/bin/python", PACKAGES, frozenset({"avx2", "fma"}))
CASE = Case("resnet18", "cpu", "fp32", "infer_jit", "ipex", 32, 32, 1, "digits")


@pytest.mark.parametrize(
    ("arm", "turned"),
    [
        ("level=O0", "+level:O0"),
        ("level=O0 conv_bn_folding=on", "+conv_bn_folding:on+level:O0"),
        ("level=O0 conv_bn_folding=off", "+level:O0"),
        ("weights_prepack=on", ""),
        ("mode=infer ONEDNN_VERBOSE=0", None),
    ],
)
def test_an_arm_may_turn_knobs(arm: str, turned: str | None) -> None:
    """They are in the case's name, and what is the default anyway is in none."""
    case, reason = parse(arm, "arm a").case(CASE, HERE)
    assert reason is None
    assert case.id == (CASE.id.replace("infer_jit", "infer") if turned is None else CASE.id + turned)
    assert (case.batch, case.size, case.data) == (32, 32, "digits")


def test_an_arm_turns_a_planned_knob_back_and_keeps_the_placement() -> None:
    """What both arms were asked for by --perf-knobs holds unless an arm says otherwise."""
    planned = dataclasses.replace(CASE, knobs=(("level", "O0"), ("placement", "cores=0")))
    assert parse("", "arm a").case(planned, HERE) == (planned, None)
    assert parse("level=O1", "arm a").case(planned, HERE)[0].knobs == (("placement", "cores=0"),)


@pytest.mark.parametrize(
    ("arm", "told"),
    [
        ("level=O7", "expected one of O1, O0, got 'O7'"),
        ("graph_mode=on", "infer_jit has no knob graph_mode"),
        ("stack=stock level=O0", "neither infer_jit nor stock has a knob level"),
    ],
)
def test_an_arm_that_cannot_have_its_knob_says_why(arm: str, told: str) -> None:
    """As the plan does: a value that is none, and a knob that means nothing in the arm's mode or stack."""
    reason = parse(arm, "arm a").case(CASE, HERE)[1]
    assert reason is not None
    assert told in reason


def test_an_interpreter_may_be_named_as_one() -> None:
    assert (
        parse("python=/bin/sh dtype=bf16", "arm a").python == parse("/bin/sh dtype=bf16", "arm a").python == "/bin/sh"
    )


def test_a_variable_has_capitals_and_a_knob_has_none() -> None:
    """A knob is no variable of the worker, and a variable is no knob."""
    words = parse("OMP_NUM_THREADS=1 weights_prepack=off dtype=bf16", "arm a")
    assert dict(words.variables) == {"OMP_NUM_THREADS": "1"}
    assert dict(words.knobs) == {"weights_prepack": "off"}
    assert dict(words.axes) == {"dtype": "bf16"}


def test_a_mode_that_is_timed_cold_is_refused(fake: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is timed once a process cannot take turns."""
    cold = Path(__file__).parent / "fakes" / "cold.py"
    cell = [word.replace("spin", "start") for word in CELL]
    assert cli.main(["ab", f"--perf-load={fake}", f"--perf-load={cold}", *cell]) == cli.USAGE_ERROR
    reason = "start is timed once per process, but the workers of a pair take many turns"
    assert capsys.readouterr().err == f"ipexperf: arm a: tiny-fake-fp32-start-plain cannot run: {reason}\n"


def test_steps_of_a_turn_are_refused_where_a_turn_is_a_replay(capsys: pytest.CaptureFixture[str]) -> None:
    """As many requests as the case has, and no other number."""
    cell = ("--model", "llama_135m", "--device", "cpu", "--dtype", "fp32", "--mode", "serve", "--stack", "stock")
    assert cli.main(["ab", *cell, "--steps", "2"]) == cli.USAGE_ERROR
    told = "--steps: a turn of serve is one replay of its requests: leave it out"
    assert capsys.readouterr().err == f"ipexperf: {told}\n"


def test_forked_workers_are_refused(fake: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Workers of one server are no replicates that were drawn anew."""
    assert cli.main(["ab", f"--perf-load={fake}", *CELL, "--perf-start", "fork"]) == cli.USAGE_ERROR
    told = "--perf-start: workers of later pairs are forked anyway: leave it out"
    assert capsys.readouterr().err == f"ipexperf: {told}\n"


def test_torch_is_asked_for_the_accelerator_of_one_arm_only(
    fake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one arm is on an accelerator, only its interpreter is asked whether torch sees it."""
    asked: list[Sequence[str]] = []

    def ask(python: str | None, accelerators: Sequence[str], *rest: object) -> Facts:
        asked.append(accelerators)
        return Facts("/env/bin/python", {})

    monkeypatch.setattr(worker, "ask_facts", ask)
    assert cli.main(["ab", f"--perf-load={fake}", *CELL, "--b", "device=xpu"]) == cli.USAGE_ERROR
    assert asked == [(), ("xpu",)]
    assert "arm b: tiny-xpu-fp32-spin-plain cannot run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--max-pairs", "25"), "max_pairs: expected 1 to 24 pairs, got 25"),
        (("--perf-launches", "3"), "--perf-launches: pairs take turns until the judge is sure: say --perf-max-pairs"),
        (("--perf-against", "level=O0"), "--perf-against is for test runs: ab has --a and --b"),
        (("--turns", "0"), "--turns and --steps must be at least 1"),
        (("--a", "'"), "arm a ''': no closing quotation"),
        (("--b", "A=1 A=2"), "arm b 'A=1 A=2': A is there twice"),
        (
            ("--b", "/bin/sh /bin/cat"),
            "arm b '/bin/sh /bin/cat': an arm has only one interpreter, not both '/bin/sh' and",
        ),
        (("--b", "OMP_NUM_THREADS=0"), "arm b 'OMP_NUM_THREADS=0': OMP_NUM_THREADS: expected a whole number from 1 on"),
        (("--b", "OMP_NUM_THREADS=2,1"), "arm b 'OMP_NUM_THREADS=2,1': OMP_NUM_THREADS: expected a whole number"),
        (("--a", "/bin/true"), "--a=/bin/true can't run workers: no message"),
        (
            ("--b", "nowhere"),
            "arm b 'nowhere': 'nowhere' is no interpreter, no lock, no KEY=VALUE,",
        ),
        (("--b", "/no/python"), "arm b '/no/python': there is no file /no/python\n"),
        (("--b", "/usr"), "arm b '/usr': /usr is a folder: name the interpreter in it, such as /usr/bin/python\n"),
        (("--b", "/etc/passwd"), "arm b '/etc/passwd': /etc/passwd is a file that may not be executed\n"),
        (
            ("--b", "nosuch=1"),
            "arm b 'nosuch=1': unknown axis or knob 'nosuch': the axes are model, device, dtype, mode, stack, and docs",
        ),
    ],
)
def test_what_ab_cannot_do_is_one_sentence(
    fake: str, more: tuple[str, str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is measured, with exit code 2."""
    assert cli.main(["ab", f"--perf-load={fake}", *CELL, *more]) == cli.USAGE_ERROR
    assert capsys.readouterr().err.startswith(f"ipexperf: {told}")


@pytest.mark.parametrize("more", [("--alpha", "0.7"), ("--tolerance", "0"), ("--budget", "-1"), ("--max-pairs", "0")])
def test_a_number_that_cannot_be_is_refused(
    fake: str, more: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """By argparse, which ends with 2 as well."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["ab", f"--perf-load={fake}", *CELL, *more])
    assert ended.value.code == cli.USAGE_ERROR
    assert f"argument {more[0]}: expected" in capsys.readouterr().err


def compared(monkeypatch: pytest.MonkeyPatch, seconds: float, *checks: Check) -> list[list[Arm]]:
    """Lets every pair of workers say that b takes so long where a takes a second. `checks` are what b finds."""
    chance = random.Random(3)  # noqa: S311 - a simulation, no secret

    def time(arm: Arm) -> float:
        return seconds * math.exp(chance.gauss(0, 0.002)) if arm.name == "arm b" else 1.0

    return played(monkeypatch, time, wrong={"arm b": checks})


def test_ab_tells_the_ratio_why_it_stopped_and_what_differs(
    fake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slowdown of a fifth with little noise is decided at the first look."""
    compared(monkeypatch, 1.2)
    arguments = ["ab", f"--perf-load={fake}", *CELL, "--b", "dtype=bf16 OMP_NUM_THREADS=1", "--tolerance", "10%"]
    assert cli.main(arguments) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "a  tiny-fake-fp32-spin-plain [as it is]"
    assert out[1] == "b  tiny-fake-bf16-spin-plain [dtype=bf16 OMP_NUM_THREADS=1]"
    assert out[2:4] == ["differs  dtype: fp32 -> bf16", "differs  OMP_NUM_THREADS: as it is -> 1"]
    assert out[4].startswith("time of b against a: +")
    assert out[5].startswith("regressed: ")
    assert "90% interval" in out[5]
    assert out[5].endswith("4 pairs), surely more than 4%")
    assert out[6] == "stopped: it was decided after 4 of at most 24 pairs"
    assert out[7].startswith("a slowdown of ")
    assert len(out[8].split(",")) == 4


def test_ab_says_that_its_arms_are_the_same(
    fake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An A/A is noise, and one with too few pairs for a verdict says what it would have seen."""
    compared(monkeypatch, 1.0)
    assert (
        cli.main(["ab", f"--perf-load={fake}", *CELL, "--a", "dtype=fp32", "--max-pairs", "2", "--budget", "60"]) == 0
    )
    out = capsys.readouterr().out
    assert "A/A: both arms are the same: any difference is noise\n" in out
    assert "2 pairs" in out
    assert "differs" not in out


def test_a_wrong_arm_ends_ab(fake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """However fast it is: one sentence with what was found, and exit code 2."""
    compared(monkeypatch, 0.1, Check("dtype", ok=False, found="float32", expected="bf16"))
    assert cli.main(["ab", f"--perf-load={fake}", *CELL, "--b", "dtype=bf16"]) == cli.USAGE_ERROR
    out, err = capsys.readouterr()
    assert err.endswith("ipexperf: arm b: dtype: found float32, expected bf16\n")
    assert out == ""


def test_an_arm_that_names_no_interpreter_has_this_one(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of the two it is: the interpreter of one arm is not the other's."""
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    other.chmod(0o755)
    seen: list[list[str | None]] = []

    def time(arm: Arm) -> NoReturn:
        raise WorkerError("error", f"{arm.name} was seen")

    rounds = played(monkeypatch, time)
    for arms in (("--a", str(other)), ("--b", str(other)), ("--a", str(other), "--b", str(other))):
        assert cli.main(["ab", f"--perf-load={fake}", *CELL, *arms]) == cli.USAGE_ERROR
        seen.append([arm.conditions.python for arm in rounds.pop()])
    assert seen == [[str(other), None], [None, str(other)], [str(other), str(other)]]


def test_an_arm_that_cannot_import_is_refused_before_anything_is_measured(
    fake: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its packages are there by name, so that only an import can tell."""
    broken = tmp_path / "broken.py"
    broken.write_text("import os\n\nif 'ARM' in os.environ:\n    raise ImportError('libthing.so: gone')\n")
    measured = compared(monkeypatch, 1.0)
    arguments = ["ab", f"--perf-load={fake},{broken}", *CELL, "--b", "ARM=1"]
    assert cli.main(arguments) == cli.USAGE_ERROR
    assert capsys.readouterr().err.splitlines()[-1].startswith("ipexperf: arm b: it cannot run plain on fake: ")
    assert measured == []
    assert not Path("ipexperf.db").exists()


def recorded(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What another command says of the history."""
    assert cli.main(arguments) == 0
    return capsys.readouterr().out


def rows(question: str) -> list[tuple[Any, ...]]:
    """What anybody with sqlite3 is answered."""
    with closing(sqlite3.connect("file:ipexperf.db?mode=ro", uri=True)) as connection:
        return connection.execute(question).fetchall()


B = "OMP_NUM_THREADS=1"
ID = "tiny-fake-fp32-spin-plain"
BOTH = (CELL[0], "tiny,other", *CELL[2:])


def test_what_ab_measured_is_a_run_of_the_history(
    fake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`show last` shows it, with its verdict, in a series of its own; the command that made it is kept."""
    compared(monkeypatch, 1.2)
    monkeypatch.setattr(sys, "argv", ["ipexperf", "ab", "--b", B])
    assert cli.main(["ab", f"--perf-load={fake}", *CELL, "--b", B]) == 0
    capsys.readouterr()
    shown = recorded(capsys, "show", "last")
    assert ID in shown
    assert "regressed" in shown
    assert rows("SELECT status, json_extract(meta, '$.command') FROM run") == [("finished", f'["ab","--b","{B}"]')]
    asked = "SELECT DISTINCT json_extract(params, '$.knobs.against') FROM launch JOIN 'case' ON \"case\".id = case_id"
    assert rows(asked) == [("itself",)]
    assert rows("SELECT count(*) FROM launch") == [(4,)]
    assert rows("SELECT DISTINCT name FROM round") == [("tiny fake infer 1x1 none against itself",)]
    assert rows("SELECT number FROM round ORDER BY id") == [(1,), (2,), (3,), (4,)]
    assert rows("SELECT role, launch FROM seat WHERE round_id = 1 ORDER BY place") == [("against", None), ("case", 0)]
    assert rows("SELECT launch FROM seat WHERE role = 'case' ORDER BY round_id, place") == [(0,), (1,), (2,), (3,)]

    assert rows("SELECT DISTINCT base_role, role, round(exp(log_ratio), 1) FROM paired") == [("against", "case", 1.2)]


def test_nothing_is_recorded_where_that_was_asked_for(
    fake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared(monkeypatch, 1.2)
    assert cli.main(["ab", f"--perf-load={fake}", *CELL, "--perf-no-record"]) == 0
    assert "regressed: " in capsys.readouterr().out
    assert not Path("ipexperf.db").exists()


def test_ab_answers_in_json(fake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One document with a comparison for each case, and nothing else on standard output."""
    compared(monkeypatch, 1.2)
    assert cli.main(["ab", f"--perf-load={fake}", *BOTH, "--b", B, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["b"] for one in found] == [ID, ID.replace("tiny", "other")]
    for one in found:
        assert one["outcome"] == "regressed"
        assert one["differences"] == ["OMP_NUM_THREADS: as it is -> 1"]
        assert 1.15 < one["lo"] < one["ratio"] < one["hi"] < 1.25
        assert len(one["log_ratios"]) == one["stop"]["rounds"] == 4
        assert (one["stop"]["why"], one["apart"]) == ("decided", False)


@pytest.mark.parametrize(("slower", "status"), [(1.2, 1), (1.0, 0), (0.8, 0)])
def test_ab_fails_where_b_is_slower_and_that_was_asked_for(
    fake: str, slower: float, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1 says it to a pipeline; being faster is no failure."""
    compared(monkeypatch, slower)
    arguments = ["ab", f"--perf-load={fake}", *CELL, "--b", B]
    assert cli.main([*arguments, "--fail"]) == status
    assert cli.main(arguments) == 0


def test_cases_of_one_group_share_the_rounds_of_ab(
    fake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both arms of both are in each round, and each comparison ends by itself."""
    arms = compared(monkeypatch, 1.2)
    cell = [word if word != "fp32" else "fp32,bf16" for word in CELL]
    assert cli.main(["ab", f"--perf-load={fake}", *cell, "--b", B, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [len(one["log_ratios"]) for one in found] == [4, 4]
    assert [[arm.case.dtype for arm in one] for one in arms] == [["fp32", "fp32", "bf16", "bf16"]] * 4
    assert rows("SELECT DISTINCT outcome FROM verdict") == [("regressed",)]
    assert rows("SELECT count(*) FROM run") == [(1,)]


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_an_arm_that_fails_later_leaves_what_there_is(
    fake: str, more: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pairs before it are told and recorded, the other case goes on, and the command ends with 2 and a sentence."""
    turns = iter(range(100))

    def time(arm: Arm) -> float:
        if arm.case.dtype == "fp32" and arm.name == "arm b" and next(turns) == 2:
            raise WorkerError("crashed", "killed by SIGSEGV")
        return 1.0

    played(monkeypatch, time)
    cell = [word if word != "fp32" else "fp32,bf16" for word in CELL]
    arguments = ["ab", f"--perf-load={fake}", *cell, "--b", B, *more]
    assert cli.main(arguments) == cli.USAGE_ERROR
    out, err = capsys.readouterr()
    assert err.endswith("ipexperf: crashed: arm b: killed by SIGSEGV\n")
    if more:
        failed, other = json.loads(out)
        assert (failed["outcome"], failed["stop"]["why"], len(failed["log_ratios"])) == ("failed", "failed", 2)
        assert (failed["ratio"], failed["reason"]) == (1.0, "crashed: arm b: killed by SIGSEGV")
        assert other["outcome"] == "ok"
    else:
        assert "time of b against a: +0.0 %" in out.partition("stopped: an arm failed")[0]
        assert "no pair was measured" not in out
    assert rows("SELECT outcome FROM launch WHERE outcome != 'ok'") == [("crashed",)]
    assert sorted(rows(OF_SPEED)) == [("failed",), ("ok",)]


def test_an_interrupted_ab_tells_and_records_what_there_is(
    fake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the third pair: two pairs are told, are on record, and claim nothing that they do not know."""
    times = iter((1.0, 1.4))

    def time(arm: Arm) -> float:
        if arm.name == "arm a":
            return 1.0
        if (found := next(times, None)) is None:
            raise KeyboardInterrupt
        return found

    played(monkeypatch, time)
    assert cli.main(["ab", f"--perf-load={fake}", *CELL, "--b", B]) == cli.INTERRUPTED
    out = capsys.readouterr().out
    assert "stopped: interrupted after 2 pairs" in out
    assert "time of b against a: +18" in out
    assert rows("SELECT status FROM run") == [("interrupted",)]
    assert rows("SELECT outcome FROM launch") == [("ok",)] * 2
    assert rows(OF_SPEED) == [("inconclusive",)]


def children(parent: int) -> list[int]:
    """The processes that this one started and that are still there."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended while we looked
            if int(path.read_text().rsplit(")", 1)[1].split()[1]) == parent:
                found.append(int(path.parent.name))
    return found


HONEST = """
from math import inf

from ipexperf.conduct import gate
from ipexperf.judge.policy import GatePolicy

gate.POLICY = GatePolicy(others=inf, steal=inf, held_up=inf)
"""


@contextmanager
def third_pair(fake: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """An `ab` of its own, and its workers, in the middle of its third pair."""
    anybody = folder / "anybody.py"
    anybody.write_text(HONEST)
    more = ("--b", B, "--max-pairs", "24", "--tolerance", "0.0001", "--turns", "2", "--steps", "1")
    command = [sys.executable, "-m", "ipexperf.cli", "ab", f"--perf-load={fake},{anybody}", *CELL, *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "pair 3 of" in line:
                break
        while not (workers := children(process.pid)):
            assert process.poll() is None
        yield process, workers


def test_an_ab_that_is_ended_by_its_system_tells_and_records_what_there_is(
    fake: str, tmp_path: Path, gone: Callable[[int], bool]
) -> None:
    """SIGTERM, with which CI systems end a job, is taken as Ctrl-C; no worker is left."""
    with third_pair(fake, tmp_path) as (process, workers):
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == cli.INTERRUPTED, err
    assert "stopped: interrupted after 2 pairs" in out
    assert all(gone(pid) for pid in workers)
    assert rows("SELECT status FROM run") == [("interrupted",)]
    assert rows("SELECT outcome FROM launch") == [("ok",)] * 2


def test_an_ab_that_is_killed_loses_only_the_pair_in_flight(
    fake: str, tmp_path: Path, gone: Callable[[int], bool]
) -> None:
    """SIGKILL can't be handled: the pairs before are on record."""
    with third_pair(fake, tmp_path) as (process, workers):
        process.kill()
        process.communicate(timeout=60)
    assert all(gone(pid) for pid in workers)
    assert rows("SELECT status FROM run") == [("running",)]
    assert rows("SELECT outcome FROM launch") == [("ok",)] * 2
    # Identical arms: which of the two it is depends on noise, and no unfinished comparison is called a regression.
    assert rows(OF_SPEED) in ([("inconclusive",)], [("ok",)])
