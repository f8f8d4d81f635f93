"""Damaged files of baselines: found before anything is measured, never overwritten."""

import os
from pathlib import Path

import pytest
from plugin_suite import CELL, SHORT, Suite
from test_plugin_against import against
from test_plugin_against import told as told_of_pairs
from test_plugin_usage import refused

from ipexperf.bench.process import environment

HALF = "{ half a file"
CHANGED = "this host is not what it was"


def own_key() -> str:
    """The machine_key that a fake case has here."""
    return environment.machine_key({**environment.hardware(), "accelerator": {"name": "fake"}})


def damaged(suite: Suite, key: str) -> Path:
    path = suite.path / "baselines" / f"{key}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(HALF)
    return path


@pytest.mark.parametrize(("whose", "more"), [("ours", ()), ("another", ("--perf-without=record",))])
def test_a_damaged_baseline_ends_the_run_before_anything_is_measured(
    suite: Suite, whose: str, more: tuple[str, ...]
) -> None:
    """Not after the first case: one sentence, exit code 4, nothing recorded, and the file as it was."""
    path = damaged(suite, own_key() if whose == "ours" else "another-4c")
    result = suite.run("tiny", *more)
    refused(result, f"{path.relative_to(suite.path)} cannot be read as JSON")
    assert path.read_text() == HALF
    assert "round 1 of" not in result.stdout.str()
    assert not list(suite.path.glob("*.db"))


def test_a_damaged_baseline_is_nothing_to_pairs(suite: Suite) -> None:
    """They are judged against their other arm."""
    damaged(suite, own_key())
    told_of_pairs(suite, 1.0)
    against(suite).assert_outcomes(passed=1)


def test_an_accepted_case_that_the_run_does_not_have_is_named(suite: Suite) -> None:
    """Renamed or removed, it would regress unseen. One that the options leave out is missed by nobody."""
    suite.run("tiny,other", "--perf-launches", "2").assert_outcomes(passed=2)
    accepted = suite.command("baseline", "accept", "last", "--reason", "first")
    assert accepted.ret == 0, accepted.stdout.str()
    assert "NOT IN THIS RUN" not in suite.run("tiny").stdout.str()
    path = next((suite.path / "baselines").glob("*.json"))
    path.write_text(path.read_text().replace("other-", "another-").replace('"model": "other"', '"model": "another"'))
    out = suite.run("all", "-k", "tiny").stdout.str()
    assert "NOT IN THIS RUN (1): a baseline was accepted for them here: another-fake-fp32-spin-plain" in out


def on_one_core(suite: Suite) -> pytest.RunResult:
    """A run of the accepted case that has one of our cores."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        return suite.fresh(*suite.load, "--model", "tiny", *CELL, *SHORT, "--perf-launches", "2")
    finally:
        os.sched_setaffinity(0, cores)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_a_host_with_fewer_cores_than_its_baseline_is_said_and_fails_until_accepted(suite: Suite) -> None:
    """It is no case without a baseline. From then on the host is judged with either number of cores, however fast."""
    suite.run("tiny", "--perf-launches", "2").assert_outcomes(passed=1)
    assert suite.command("baseline", "accept", "last", "--reason", "first light").ret == 0
    moved = on_one_core(suite)
    moved.assert_outcomes(failed=1)
    assert CHANGED in moved.stdout.str()
    assert "there is none yet" not in moved.stdout.str()
    gate = suite.command("gate")
    assert (gate.ret, CHANGED in gate.stdout.str()) == (1, True)
    assert suite.command("baseline", "accept", "last", "--reason", "at times it has one core").ret == 0
    for result in (on_one_core(suite), suite.run("tiny", "--perf-launches", "2")):
        assert CHANGED not in result.stdout.str()
    judged = {outcome for (outcome,) in suite.verdicts("v.outcome")[-2:]}
    assert judged.isdisjoint({"no_baseline", "not_comparable"})
