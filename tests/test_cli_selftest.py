"""`ipexperf selftest`: its trials, their rates, their records, and its errors."""

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
from ipexperf.result import Check

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ipexperf.compare.arm import Arm


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


def test_equal_arms_are_ok_and_slowed_arms_are_caught(
    selftest: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Counted by size. Each trial is recorded, and only an A/A checks its proof."""
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


def test_selftests_add_up_over_time(
    selftest: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The second one counts the trials of both, but not those under another policy."""
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


def test_an_interruption_keeps_earlier_trials(
    selftest: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Ctrl-C during the second trial: the first one is printed and recorded."""

    def slower(arm: Arm) -> float:
        if arm.conditions.settings.injected:
            raise KeyboardInterrupt
        return 1.0

    told(monkeypatch, slower)
    assert selftest("--injections", "busy10") == cli.INTERRUPTED
    assert "A/A called regressed: 0 of 1" in capsys.readouterr().out
    assert kept(tmp_path) == [("A/A", "ok")]


def test_a_trial_that_was_cut_short_is_not_counted(
    selftest: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No trial begins after the time is over."""
    told(monkeypatch, honest, spread=0.5)
    left = iter([False] * 4)
    monkeypatch.setattr("ipexperf.conduct.conductor.Conductor.spent", lambda _: next(left, True))
    assert selftest("--injections", "busy10", "--seconds", "60") == 1
    out, err = capsys.readouterr()
    assert "cut short by the budget, and not counted: 1 trial" in out
    assert "no A/A was judged" in out
    assert "the time is up: 1 of 2 trials were not run" in err


def test_a_case_whose_a_a_fails_its_proof_has_no_injections(
    selftest: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told(monkeypatch, honest, Check("dtype", ok=False, found="float32", expected="bf16"))
    assert selftest("--injections", "busy10") == 1
    out = capsys.readouterr().out
    assert "failed: tiny-fake-fp32-spin-plain, A/A: invalid: dtype: found float32, expected bf16" in out
    assert "known size" not in out


def test_a_worker_that_dies_is_reported(
    selftest: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Without a measured pair nothing is recorded, because the environment is unknown."""

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
        (("--max-pairs", "25"), "max_pairs: expected 1 to 24 pairs, got 25"),
    ],
)
def test_an_impossible_request_is_one_sentence(
    selftest: Callable[..., int], more: tuple[str, str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert selftest(*more) == cli.USAGE_ERROR
    assert capsys.readouterr().err.startswith(f"ipexperf: {reason}")


@pytest.mark.process
def test_real_workers_are_slowed_down(
    selftest: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """From the command down to processes: two pairs each, too few for a verdict on speed, all recorded."""
    assert selftest("--injections", "busy5", "--turns", "2", "--steps", "1", "--max-pairs", "2") == 0
    assert "spent: 4 pairs" in capsys.readouterr().out
    assert [name for name, _ in kept(tmp_path)] == ["A/A", "busy5"]


def test_with_no_record_nothing_is_recorded(
    selftest: Callable[..., int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told(monkeypatch, honest)
    assert selftest("--injections", "none", "--perf-without=record") == 0
    assert not (tmp_path / "ipexperf.db").exists()
