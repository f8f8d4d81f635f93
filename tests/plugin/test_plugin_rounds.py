"""A run is made of rounds: cases that can be compared are alive together, and each round is kept when it has ended."""

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from plugin_suite import CELL, SHORT, Suite

THREE = (*CELL[:2], "--dtype", "fp32,bf16,fp16", *CELL[4:])
"""With one model these are three cases of one group."""
TWICE = ("--perf-launches", "2", "--perf-preset", "preflight")  # which has no twin
MOODY = """
import os
import signal
import time
from pathlib import Path

from ipexperf.bench import registry


class Moody(type(registry.modes.get("spin"))):
    name = "moody"

    def open(self, bench):
        session = super().open(bench)
        dtype = bench.case.dtype
        met = Path(os.environ["MOODS"]) / dtype
        number = len(met.read_text()) + 1 if met.exists() else 1
        met.write_text("x" * number)
        mood = os.environ.get(f"MOOD_{dtype.upper()}", "")
        if mood in ("dies", f"dies in {number}", f"hangs in {number}"):
            session.answer = dies if mood.startswith("dies") else hangs
        return session


def dies():
    os.kill(os.getpid(), signal.SIGKILL)


def hangs():
    path = Path(os.environ["FAKE_PID_FILE"])
    part = path.with_suffix(".part")
    part.write_text(str(os.getpid()))
    part.replace(path)
    time.sleep(1000)


registry.modes.add("moody", Moody())
"""
MOODY_CELL = ("--device", "fake", "--dtype", "fp32,bf16,fp16", "--mode", "moody", "--stack", "plain")


@pytest.fixture
def moody(suite: Suite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Suite:
    """A suite with a mode whose workers die or hang where a test says so: `MOOD_BF16=dies in 2`."""
    path = suite.path / "moody.py"
    path.write_text(MOODY)
    monkeypatch.setenv("MOODS", str(tmp_path))
    suite.load = (f"--perf-load={suite.fake},{path}",)
    return suite


def seats(suite: Suite) -> list[tuple[int, str, str, int | None]]:
    """Who sat in each round: its number, the dtype, the role, and the launch that it was."""
    found = suite.query(
        "SELECT r.number, c.dtype, s.role, s.launch FROM seat s "
        "JOIN round r ON r.id = s.round_id JOIN 'case' c ON c.id = s.case_id ORDER BY r.id, s.place"
    )
    return [(number, dtype, role, launch) for number, dtype, role, launch in found]


def launches(suite: Suite) -> list[tuple[str, int, str]]:
    """The dtype, the number and the outcome of every recorded launch."""
    found = suite.query(
        "SELECT c.dtype, l.launch, l.outcome FROM launch l JOIN 'case' c ON c.id = l.case_id ORDER BY l.launch, 1"
    )
    return [(dtype, launch, outcome) for dtype, launch, outcome in found]


def all_ok(count: int, *dtypes: str) -> list[tuple[str, int, str]]:
    return [(dtype, launch, "ok") for launch in range(count) for dtype in sorted(dtypes)]


def test_all_cases_of_a_group_share_their_rounds(suite: Suite) -> None:
    """One launch of each case a round; which took turns with which is on record, with every turn that counts."""
    result = suite.run("tiny", *TWICE, cell=THREE)
    result.assert_outcomes(passed=3)
    out = result.stdout.str()
    assert re.findall(r"round \d of \d, .*", out) == ["round 1 of 2, 3 cases", "round 2 of 2, 3 cases"]
    assert launches(suite) == all_ok(2, "fp32", "bf16", "fp16")
    expected = [(number, dtype, "case", number - 1) for number in (1, 2) for dtype in ("fp32", "bf16", "fp16")]
    assert seats(suite) == expected
    for turns, schedule, length, processes in suite.query(
        "SELECT r.turns, r.schedule, length(s.data), s.turns FROM seat s JOIN round r ON r.id = s.round_id"
    ):
        assert schedule == "together"
        assert turns >= 1
        assert length > 0
        assert processes == f"[{turns}]"
    # Both directions are one row: each pair of arms of a round once.
    assert suite.query("SELECT count(*) FROM paired") == [(6,)]
    assert "ratios compare cases that took turns in the same rounds" in out


def test_models_share_no_round(suite: Suite) -> None:
    """A case by itself is measured alone: there is no ratio, and no row of a round."""
    result = suite.run("tiny,other", *TWICE)
    result.assert_outcomes(passed=2)
    told = re.findall(r"(\w+) fake infer 1x1 none: (round \d of \d, \d cases?)", result.stdout.str())
    assert told == [(model, f"round {n} of 2, 1 case") for model in ("tiny", "other") for n in (1, 2)]
    assert suite.query("SELECT count(*) FROM round") == [(0,)]


def test_the_reference_has_a_twin_in_the_preset_quick(suite: Suite) -> None:
    """It shows the noise, and is no launch of its case."""
    result = suite.run("tiny", cell=THREE)
    result.assert_outcomes(passed=3)
    assert seats(suite)[:2] == [(1, "fp32", "case", 0), (1, "fp32", "twin", None)]
    assert launches(suite) == all_ok(1, "fp32", "bf16", "fp16")
    assert "the same again (A/A twin)" in result.stdout.str()


@pytest.mark.process
def test_a_worker_that_dies_fails_its_own_case_alone(moody: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a round: the others go on in it and in the next, and their ratio stands."""
    monkeypatch.setenv("MOOD_BF16", "dies in 1")
    result = moody.run("tiny", *TWICE, cell=MOODY_CELL)
    result.assert_outcomes(passed=2, failed=1)
    out = result.stdout.str()
    assert "round 2 of 2, 2 cases" in out
    assert "  case        tiny-fake-bf16-moody-plain (batch 1)" in out
    assert launches(moody) == [("bf16", 0, "crashed"), *all_ok(2, "fp32", "fp16")]
    assert {(number, dtype) for number, dtype, _, _ in seats(moody)} == {
        (1, "fp32"),
        (1, "fp16"),
        (2, "fp32"),
        (2, "fp16"),
    }


@pytest.mark.process
def test_a_reference_that_dies_leaves_another_one(moody: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the next round on the plainest of those that are left is what the others are held against."""
    monkeypatch.setenv("MOOD_FP32", "dies")
    result = moody.run("tiny", "--perf-launches", "2", cell=MOODY_CELL)
    result.assert_outcomes(passed=2, failed=1)
    assert launches(moody) == [*all_ok(1, "bf16", "fp16"), ("fp32", 0, "crashed"), *all_ok(2, "bf16", "fp16")[2:]]
    twins = [(number, dtype) for number, dtype, role, _ in seats(moody) if role == "twin"]
    assert twins[-1] == (2, "bf16")


@pytest.mark.process
def test_the_first_failure_ends_the_run_with_what_its_group_measured_on_record(
    moody: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """-x: one test is reported, and the others' launches were made already."""
    monkeypatch.setenv("MOOD_FP32", "dies in 1")
    result = moody.run("tiny", *TWICE, "-x", cell=MOODY_CELL)
    result.assert_outcomes(failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert ("fp16", 1, "ok") in launches(moody)
    assert moody.query("SELECT outcome, count(*) FROM verdict GROUP BY outcome ORDER BY outcome") == [
        ("failed", 1),
        ("no_baseline", 2),
    ]
    assert moody.statuses() == ["finished"]


SPENT = """
from ipexperf.compare import together
from ipexperf.conduct.conductor import Conductor

honest, PLAYED = together.play, []


def play(*given):
    played = honest(*given)
    PLAYED.append(played)
    return played


together.play = play
Conductor.spent = lambda self: bool(PLAYED)
"""


def test_the_budget_ends_a_group_after_a_whole_round(suite: Suite) -> None:
    """Every case has the launches that there was time for, and says why there are no more."""
    suite.without_workers()
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(SPENT)
    result = suite.run("tiny,other", *TWICE, "--perf-budget", "99", cell=THREE)
    result.assert_outcomes(passed=6)
    assert launches(suite) == all_ok(1, "fp32", "bf16", "fp16")
    reasons = suite.query("SELECT json_extract(reason, '$.text') FROM verdict")
    assert sum("was spent after 1 of 2 launches" in reason for (reason,) in reasons) == 3
    assert sum("was spent already" in reason for (reason,) in reasons) == 3
    assert len(seats(suite)) == 3
    assert suite.statuses() == ["finished"]


def test_a_case_that_two_tests_take_is_measured_once(suite: Suite) -> None:
    """Both are told the same, and no launch is in the place of another."""
    suite.pytester.makepyfile(
        test_suite="""
        import pytest

        @pytest.mark.perf
        def test_all(perf):
            perf()

        @pytest.mark.perf(models=["tiny"])
        def test_again(perf):
            perf()
        """
    )
    both = (*CELL[:2], "--dtype", "fp32,bf16", *CELL[4:])
    result = suite.run("tiny", *TWICE, cell=both)
    result.assert_outcomes(passed=4)
    assert result.stdout.str().count("round 1 of 2") == 1
    assert launches(suite) == all_ok(2, "fp32", "bf16")
    assert suite.query("SELECT count(*) FROM verdict") == [(2,)]
    assert result.stdout.str().count("no_baseline") == 2


def in_round_two(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, how: signal.Signals, *, pairs: bool = False
) -> tuple[int, int, str]:
    """Ends a run of three cases in its second round; tells a worker of that, the exit code and what was said."""
    monkeypatch.setenv("MOOD_FP16", "hangs in 3" if pairs else "hangs in 2")
    suite.short_pairs()
    more = ("--perf-against=",) if pairs else (*SHORT, "--perf-launches", "3", "--perf-preset", "preflight")
    with suite.start("tiny", *more, cell=MOODY_CELL, short=()) as process:
        [worker] = suite.pids()
        process.send_signal(how)
        out, _ = process.communicate(timeout=30)
    return worker, process.returncode, out


@pytest.mark.process
def test_a_run_that_is_interrupted_in_its_second_round_keeps_the_first(
    moody: Suite, monkeypatch: pytest.MonkeyPatch, gone: Callable[[int], bool]
) -> None:
    """Every case of the group is on record and in the summary, says why it has one launch, and nobody is left."""
    worker, status, out = in_round_two(moody, monkeypatch, signal.SIGINT)
    assert status == pytest.ExitCode.INTERRUPTED, out
    assert gone(worker)
    assert launches(moody) == all_ok(1, "fp32", "bf16", "fp16")
    assert [(number, dtype) for number, dtype, _, _ in seats(moody)] == [(1, "fp32"), (1, "bf16"), (1, "fp16")]
    assert moody.statuses() == ["interrupted"]
    reasons = moody.query("SELECT outcome, json_extract(reason, '$.text') FROM verdict")
    assert [outcome for outcome, _ in reasons] == ["no_baseline"] * 3
    assert all("the run was interrupted before its other launches" in reason for _, reason in reasons)
    for dtype in ("fp32", "bf16", "fp16"):
        assert re.search(rf"^tiny-fake-{dtype}-moody-plain +1 .*no_baseline", out, re.MULTILINE), out


@pytest.mark.process
def test_a_run_that_is_killed_in_its_second_round_has_the_first(
    moody: Suite, monkeypatch: pytest.MonkeyPatch, gone: Callable[[int], bool]
) -> None:
    """After SIGKILL, when nobody can write anything down any more: launches, round and a reason are there."""
    worker, _, _ = in_round_two(moody, monkeypatch, signal.SIGKILL)
    assert gone(worker)
    assert launches(moody) == all_ok(1, "fp32", "bf16", "fp16")
    assert [dtype for _, dtype, _, _ in seats(moody)] == ["fp32", "bf16", "fp16"]
    assert moody.statuses() == ["running"]
    reasons = moody.query("SELECT json_extract(reason, '$.text') FROM verdict")
    assert len(reasons) == 3
    assert all("the run ended before its other launches" in reason for (reason,) in reasons)


@pytest.mark.process
def test_pairs_that_are_interrupted_in_the_second_round_keep_the_first(
    moody: Suite, monkeypatch: pytest.MonkeyPatch, gone: Callable[[int], bool]
) -> None:
    """One pair of each case is on record, and nobody says anything of speed."""
    worker, status, out = in_round_two(moody, monkeypatch, signal.SIGINT, pairs=True)
    assert gone(worker)
    assert launches(moody) == all_ok(1, "fp32", "bf16", "fp16")
    assert moody.verdicts("outcome") == [("inconclusive",)] * 3
    assert moody.statuses() == ["interrupted"]
    assert status == pytest.ExitCode.INTERRUPTED, out
    assert "interrupted after 1 pair" in out


def test_what_cannot_be_recorded_fails_the_tests_of_its_cases(suite: Suite) -> None:
    """Each with its sentence: the numbers of a case that is on no record are told to nobody as if they were."""
    suite.without_workers()
    suite.run("other").assert_outcomes(passed=1)
    with (suite.path / "conftest.py").open("a") as conftest:
        conftest.write(FULL)
    result = suite.run("tiny", *TWICE, cell=THREE)
    result.assert_outcomes(failed=3)
    assert result.stdout.str().count("the disk is full") >= 3
    assert "Traceback" not in result.stdout.str()
    assert "INTERNALERROR" not in result.stdout.str()


FULL = """
from ipexperf.errors import HistoryError
from ipexperf.history.store import History


def record(*given, **more):
    raise HistoryError("the disk is full")


History.record = record
"""
