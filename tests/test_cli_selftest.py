"""`ipexperf selftest`: what it tries, what it counts, what it keeps, and what it refuses."""

from __future__ import annotations

import math
import os
import random
from typing import TYPE_CHECKING

import pytest
from fake_rounds import played

from ipexperf import cli
from ipexperf.errors import WorkerError
from ipexperf.history.selftests import trials
from ipexperf.history.store import History
from ipexperf.judge.policy import PairPolicy
from ipexperf.plan import injections
from ipexperf.result import Check

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ipexperf.bench.machine.facts import Facts
    from ipexperf.compare.arm import Arm
    from ipexperf.plan.injections import Injection
    from ipexperf.plan.options import Options


ALL = sorted(os.sched_getaffinity(0))
CELL = ("--device", "fake", "--dtype", "fp32", "--mode", "spin", "--stack", "plain")


@pytest.fixture
def selftest(fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs the command on fake cases, with a history in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*more: str, model: str = "tiny") -> int:
        return cli.main(["selftest", f"--perf-load={fake}", "--model", model, *CELL, *more])

    return run


def told(
    monkeypatch: pytest.MonkeyPatch, slower: Callable[[Arm], float], *checks: Check, spread: float = 0.002
) -> list[list[Arm]]:
    """Lets each pair of workers say what these arms take, the second one with noise; tells which arms there were."""
    chance = random.Random(3)  # noqa: S311 - a simulation, no secret

    def seconds(arm: Arm) -> float:
        return slower(arm) * (1.0 if arm.name == "as it is" else math.exp(chance.gauss(0, spread)))

    return played(monkeypatch, seconds, *checks)


def honest(arm: Arm) -> float:
    """A machine on which an injection costs what it says."""
    return 1 + float(arm.conditions.settings.injected.partition("=")[2] or 0)


def kept(path: Path) -> list[tuple[str, str]]:
    with History.open(path / "ipexperf.db", create=False) as history:
        return [(trial.injection, trial.outcome) for trial in trials(history)]


def test_what_is_the_same_is_ok_and_what_is_slowed_is_caught(
    selftest: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Counted by size, and each trial is in the history; only an A/A is asked to prove what it is."""
    asked = told(monkeypatch, honest)
    assert selftest("--injections", "busy3,busy10") == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == (
        "false alarms, A/A called regressed: 0 of 1 (95% interval 0.0% to 97.5%); called improved: 0; inconclusive: 0"
    )
    assert [line.split()[:7] for line in lines[3:5]] == [
        ["+3.0", "%", "1", "0", "0", "1", "0"],
        ["+10.0", "%", "1", "1", "0", "0", "0"],
    ]
    assert "trial 3 of 3" in err
    assert kept(tmp_path) == [("A/A", "ok"), ("busy3", "ok"), ("busy10", "regressed")]
    proving = [[arm.prove for arm in arms] for arms in asked]
    assert proving[0] == [True, True]
    assert not any(any(pair) for pair in proving[1:])


def test_a_judge_that_sees_nothing_is_told(
    selftest: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The liar: a machine on which what was injected does not show. It is a miss, not a pass."""
    told(monkeypatch, lambda _: 1.0)
    assert selftest("--injections", "busy10") == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "+10.0 %" in line)
    assert line.split()[2:6] == ["1", "0", "1", "0"]


def test_a_machine_that_favours_one_arm_is_a_false_alarm(
    selftest: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other liar: the second arm is slower though nothing was done to it."""
    told(monkeypatch, lambda arm: 1.2 if arm.name == "A/A" else 1.0)
    assert selftest("--injections", "none") == 0
    assert "A/A called regressed: 1 of 1 (95% interval 2.5% to 100.0%)" in capsys.readouterr().out


def test_selftests_add_up_over_time(
    selftest: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A second one tells of both; trials under another policy are another judge's."""
    told(monkeypatch, honest)
    assert selftest("--injections", "none", "--rounds", "2") == 0
    assert "over all selftests" not in capsys.readouterr().out
    assert selftest("--injections", "none") == 0
    assert "over all selftests of this machine that are kept: 0 of 3 (" in capsys.readouterr().out
    assert selftest("--injections", "none", "--tolerance", "10%") == 0
    assert "over all selftests" not in capsys.readouterr().out
    with History.open(tmp_path / "ipexperf.db", create=False) as history:
        assert len(trials(history, "fake-2c", PairPolicy())) == 3
        assert trials(history, "another") == []


def test_what_is_interrupted_leaves_what_was_measured(
    selftest: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Ctrl-C in the middle of the second trial: the first is told and kept."""

    def slower(arm: Arm) -> float:
        if arm.conditions.settings.injected:
            raise KeyboardInterrupt
        return 1.0

    told(monkeypatch, slower)
    assert selftest("--injections", "busy10") == cli.INTERRUPTED
    assert "A/A called regressed: 0 of 1" in capsys.readouterr().out
    assert kept(tmp_path) == [("A/A", "ok")]


def test_what_the_time_ends_is_not_counted(
    selftest: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No trial begins after it, and one that was cut short says nothing of the judge."""
    told(monkeypatch, honest, spread=0.5)
    left = iter([False] * 4)
    monkeypatch.setattr("ipexperf.conduct.conductor.Conductor.spent", lambda _: next(left, True))
    assert selftest("--injections", "busy10", "--seconds", "60") == 1
    out, err = capsys.readouterr()
    assert "cut short by the budget, and not counted: 1 trial" in out
    assert "no A/A was judged" in out
    assert "the time is up: 1 of 2 trials were not run" in err


def test_a_case_that_is_wrong_is_tried_no_further(
    selftest: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its A/A did not prove what it is: no injection says anything."""
    told(monkeypatch, honest, Check("dtype", ok=False, found="float32", expected="bf16"))
    assert selftest("--injections", "busy10") == 1
    out = capsys.readouterr().out
    assert "failed: tiny-fake-fp32-spin-plain, A/A: invalid: dtype: found float32, expected bf16" in out
    assert "known size" not in out


def test_a_worker_that_dies_is_told(
    selftest: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Where no pair was measured nothing is kept, for nobody said where it was."""

    def slower(_: Arm) -> float:
        raise WorkerError("crashed", "killed by SIGSEGV")

    told(monkeypatch, slower)
    assert selftest("--injections", "none") == 1
    assert "A/A: failed: crashed: as it is: killed by SIGSEGV" in capsys.readouterr().out
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (("--injections", "busy4"), "--injections: unknown injection 'busy4': did you mean busy"),
        (("--perf-launches", "3"), "--perf-launches: pairs take turns until the judge is sure: say --perf-max-pairs"),
        (("--perf-against", "stack=ipex"), "--perf-against is for test runs: selftest has no use for it"),
        (("--max-pairs", "25"), "max_pairs: expected 1 to 24 pairs, got 25"),
    ],
)
def test_what_a_selftest_cannot_do_is_one_sentence(
    selftest: Callable[..., int], more: tuple[str, str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert selftest(*more) == cli.USAGE_ERROR
    assert capsys.readouterr().err.startswith(f"ipexperf: {reason}")


@pytest.mark.skipif(len(ALL) < 2, reason="a core to leave out")
def test_injections_are_for_the_cores_that_the_cases_have(
    selftest: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one core of several there is no thread to take away: what was called `threads` would be an A/A."""
    told(monkeypatch, honest)
    found: list[int] = []

    def chosen(names: tuple[str, ...], options: Options, facts: Facts) -> tuple[Injection, ...]:
        found.append(facts.cores)
        return choose(names, options, facts)

    choose = injections.chosen
    monkeypatch.setattr(injections, "chosen", chosen)
    assert selftest("--injections", "none") == 0
    assert selftest("--injections", "none", "--perf-placement", f"cores={ALL[-1]}") == 0
    assert found == [len(ALL), 1]


@pytest.mark.process
def test_real_workers_are_slowed_down(
    selftest: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """From the command to processes and back: two pairs each, too few to say anything of speed, all kept."""
    assert selftest("--injections", "busy5", "--turns", "2", "--steps", "1", "--max-pairs", "2") == 0
    assert "spent: 4 pairs" in capsys.readouterr().out
    assert [name for name, _ in kept(tmp_path)] == ["A/A", "busy5"]


def test_nothing_is_kept_where_nothing_is_recorded(
    selftest: Callable[..., int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told(monkeypatch, honest)
    assert selftest("--injections", "none", "--perf-no-record") == 0
    assert not (tmp_path / "ipexperf.db").exists()
