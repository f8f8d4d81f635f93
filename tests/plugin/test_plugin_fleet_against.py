"""Pairs on the hosts of a fleet: each host compares its cases with the other arm, and the run judges by that."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from test_plugin_fleet import LOAD, cut_off, mark, metas
from test_plugin_usage import refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from plugin_suite import Suite

pytestmark = pytest.mark.long

__all__ = ["mark"]  # a fixture

CELL = ("--perf-device=fake", "--perf-dtype=fp32", "--perf-mode=spin", "--perf-stack=plain")
PACED = """
import os
from ipexperf.bench import registry


@registry.model("hasty", size=1, batch_train=1, batch_infer=1, version=1, data="none", needs=(), trained=False)
def hasty():
    times = 1 if "HASTE" in os.environ else 4  # the answer is that of the other fakes
    return lambda: [sum(number * number for number in range(2_000)) for _ in range(times)][-1]
"""


def compared(suite: Suite, models: str, *more: str, arm: str = "", pairs: int = 2) -> pytest.RunResult:
    """A run of these models in pairs with an arm."""
    length = f"--perf-max-pairs={pairs}"
    return suite.raw(*suite.load, LOAD, f"--perf-model={models}", *CELL, f"--perf-against={arm}", length, *more)


def evidence(suite: Suite) -> list[tuple[str, str, int]]:
    """Outcome, other arm and number of pairs of each verdict."""
    rows = suite.verdicts("outcome, reason")
    found = [(outcome, json.loads(reason)["baseline"]) for outcome, reason in rows]
    return [(outcome, one["against"], len(one["log_ratios"])) for outcome, one in found]


def test_each_host_compares_the_matrix_with_the_other_arm(suite: Suite) -> None:
    """An A/A: nothing is claimed, and the rounds, verdicts and launches are recorded as if they were of here."""
    suite.short_pairs()
    result = compared(suite, "tiny", "--perf-fleet=local:a,b")
    result.assert_outcomes(passed=2)
    assert suite.statuses() == ["finished", "finished"]
    assert suite.launches() == [("tiny", "ok")] * 4
    assert [one[1:] for one in evidence(suite)] == [("itself", 2)] * 2
    assert suite.query("SELECT role, count(*) FROM seat GROUP BY role ORDER BY role") == [("against", 4), ("case", 4)]
    assert [len(meta["fleet"]["hosts"]) for meta in metas(suite)] == [1, 1]  # type: ignore[index]


def test_a_slower_case_fails_by_the_pairs_of_its_host(suite: Suite) -> None:
    """The other arm is what hosts understand by its words: variables are set there."""
    suite.short_pairs()
    (suite.path / "paced.py").write_text(PACED)
    result = compared(suite, "hasty", "--perf-load=paced.py", "--perf-fleet=local:a", arm="HASTE=1", pairs=6)
    result.assert_outcomes(failed=1)
    [(outcome, arm, pairs)] = evidence(suite)
    assert (outcome, arm) == ("regressed", "HASTE=1")
    assert pairs >= 4
    result.stdout.fnmatch_lines(["*differs     HASTE: 1 -> as it is"])


def test_a_host_that_died_fails_its_comparison_and_no_other(
    suite: Suite, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEET_FATAL", "always")
    suite.short_pairs()
    result = compared(suite, "tiny,fatal", "--perf-fleet=local:a")
    assert result.ret == 1
    result.assert_outcomes(passed=1, failed=1)
    assert mark.exists()
    result.stdout.fnmatch_lines(["*crashed: the host a was lost: its process ended with status -9*"])
    series = "SELECT DISTINCT model, json_extract(params, '$.knobs.against') FROM \"case\" ORDER BY 1, 2"
    assert suite.query(series) == [("fatal", "itself"), ("tiny", None), ("tiny", "itself")]


@pytest.mark.parametrize("arm", ["", "HASTE=1"])
def test_a_comparison_that_was_over_is_taken_over(
    arm: str, suite: Suite, mark: Path, gone: Callable[[int], bool]
) -> None:
    """If the same is asked for: with another arm, it is another comparison."""
    suite.short_pairs()
    run = cut_off(suite, mark, gone, "--perf-against=", "--perf-max-pairs=2", short=())
    began = mark.stat().st_mtime_ns
    result = compared(suite, "patient,tiny", "--perf-fleet=local:a", f"--perf-resume={run}", arm=arm)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([f"*a: 1 group of run {run}, complete and measured by this code, kept here*"])
    assert (mark.stat().st_mtime_ns == began) == (arm == "")
    assert [one[1:] for one in evidence(suite)] == [(arm or "itself", 2)] * 2
    assert suite.query("SELECT role, count(*) FROM seat GROUP BY role ORDER BY role") == [("against", 4), ("case", 4)]


@pytest.mark.parametrize(
    ("arm", "reason"),
    [
        ("stack=nothing", "host a: --perf-against: unknown stack 'nothing'"),
        ("/not/there/python", "host a: --perf-against '/not/there/python': there is no file /not/there/python"),
        ("lock:nowhere.txt", "host a: there is no lock nowhere.txt"),
    ],
)
def test_an_arm_that_a_host_cannot_have_is_one_sentence(suite: Suite, arm: str, reason: str) -> None:
    refused(compared(suite, "tiny", "--perf-fleet=local:a", arm=arm), reason)
