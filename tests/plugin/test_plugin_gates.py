"""`--perf-gate`: a case that takes more memory fails its test, though it is as quick as ever."""

import re
from pathlib import Path

import pytest
from plugin_suite import Suite
from test_plugin_against import CELL

ID = "tiny-fake-fp32-spin-plain"
TWO = ("--perf-launches", "2", "--perf-against", "stored")
MIB = 2**20


def accept(suite: Suite, *more: str) -> pytest.RunResult:
    return suite.command("baseline", "accept", "last", "--reason", "so it is", *more)


@pytest.fixture(scope="module")
def known_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keeps the folder of the first known suite for the others."""
    return tmp_path_factory.mktemp("known")


@pytest.fixture
def known(suite: Suite, known_once: Path) -> Suite:
    """A suite whose case took 64 MiB when it was accepted."""
    if not suite.kept_in(known_once):
        suite.run("tiny", *TWO).assert_outcomes(passed=1)
        assert accept(suite).ret == 0
        suite.keep(known_once)
    return suite


def taking(times: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the case take this many times its memory."""
    monkeypatch.setenv("FAKE_MEMORY", str(times))


def verdicts(suite: Suite) -> dict[str, str]:
    """The verdicts of the last run, by metric."""
    rows = suite.query(
        "SELECT s.metric, v.outcome FROM verdict v JOIN series s ON s.id = v.series_id "
        "WHERE v.run_id = (SELECT max(id) FROM run) ORDER BY v.judged_at"
    )
    return dict(rows)


def test_two_per_cent_more_memory_fail_the_test_and_are_named(known: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the terminal, in JUnit, in markdown, in the history; and it was measured twice before."""
    taking(1.02, monkeypatch)
    summary = known.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    result = known.run("tiny", *TWO, "--junitxml=junit.xml")
    result.assert_outcomes(failed=1)
    told = result.stdout.str()
    assert f"{ID}: it looks worse in held_memory, and is measured again after the other cases" in told
    sentence = "2.0 % more held_memory: 64.0 -> 65.3 MiB (+"
    assert f"REGRESSED: {sentence}" in told
    assert f"    {sentence}" in told
    judged = verdicts(known)
    judged.pop("mean_step")  # whatever the machine did to it
    assert judged == {"step_time": "regressed", "held_memory": "regressed"}
    properties = known.properties()
    assert (properties["verdict"], properties["verdict_held_memory"]) == ("regressed", "regressed")
    assert float(properties["ratio_held_memory"]) == pytest.approx(1.02, abs=1e-3)
    assert "**regressed**: 2.0 % more held\\_memory: 64.0" in summary.read_text()
    # Eight fresh processes at the second look, and two each of the first and of what was accepted.
    assert len(known.launches()) == 12


def test_two_per_cent_less_are_told_and_fail_nothing(known: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    taking(0.98, monkeypatch)
    result = known.run("tiny", *TWO)
    result.assert_outcomes(passed=1)
    assert "2.0 % less held_memory: 64.0 -> 62.7 MiB (" in re.sub(r"\s+", " ", result.stdout.str())
    assert verdicts(known)["held_memory"] == "improved"


def test_a_run_may_judge_memory_alone(known: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by the ini file."""
    taking(1.02, monkeypatch)
    known.always("--perf-gate=held_memory")
    result = known.run("tiny", *TWO)
    result.assert_outcomes(failed=1)
    assert verdicts(known) == {"step_time": "regressed", "held_memory": "regressed"}


def test_the_mark_of_a_test_has_a_gate_of_its_own(known: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two tests of a case does not care for memory. Each is judged by its own."""
    taking(1.02, monkeypatch)
    known.pytester.makepyfile(
        test_suite="""
        import pytest


        @pytest.mark.perf(gate=["step_time"])
        def test_time(perf):
            perf()


        @pytest.mark.perf
        def test_time_and_memory(perf):
            perf()
        """
    )
    result = known.run("tiny", *TWO)
    result.assert_outcomes(passed=1, failed=1)
    assert "FAILED test_suite.py::test_time_and_memory" in result.stdout.str()


def test_every_launch_is_fresh_where_a_time_is_judged_that_only_those_tell(suite: Suite) -> None:
    """Later rounds are forked otherwise, and have no such number."""
    cell = ("--device", "fake", "--dtype", "fp32,bf16", "--mode", "spin", "--stack", "plain")
    suite.run("tiny", "--perf-launches", "3", "--perf-gate", "step_time,prepare_time", cell=cell)
    forked = suite.query("SELECT json_extract(doc, '$.gate.forked'), count(*) FROM launch GROUP BY 1")
    assert forked == [(None, 6)]


def test_pairs_judge_the_memory_of_fresh_processes(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is one arm's alone: its workers take more."""
    taking(1.02, monkeypatch)
    # So small a tolerance that speed is not decided before the eighth pair.
    words = ("--perf-against=FAKE_MEMORY=1", "--perf-max-pairs=8", "--perf-tolerance=0.1%", "--perf-start=fresh")
    result = suite.raw(*suite.load, *CELL, *words)
    result.assert_outcomes(failed=1)
    assert verdicts(suite)["held_memory"] == "regressed"
