"""`ipexperf doctor`: looks, measures one case against itself, and says how small a slowdown can be shown."""

import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_rounds import played

from ipexperf import cli
from ipexperf.compare.arm import Arm
from ipexperf.conduct import machine_checks
from ipexperf.conduct.machine_checks import MachineFinding
from ipexperf.errors import WorkerError
from ipexperf.result import Check

CELL = ("--model", "tiny", "--device", "fake", "--dtype", "fp32", "--mode", "spin", "--stack", "plain")
Doctor = Callable[..., int]


def found(monkeypatch: pytest.MonkeyPatch, *findings: MachineFinding) -> None:
    """Let this be what a look at the machine finds."""
    monkeypatch.setattr(machine_checks, "run_checks", lambda _: list(findings))


@pytest.fixture
def doctor(fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Runs the command on a fake case, on a machine with which nothing is wrong."""
    monkeypatch.chdir(tmp_path)
    found(monkeypatch, MachineFinding("governor", "ok", "performance"))
    return lambda *more: cli.main(["doctor", f"--perf-load={fake}", *CELL, *more])


def told(monkeypatch: pytest.MonkeyPatch, spread: float, shift: float = 1.0, *checks: Check) -> None:
    """Lets each pair of workers say what an A/A takes: the second arm `shift` times as long, and noise."""
    chance = random.Random(5)  # noqa: S311 - a simulation, no secret
    played(monkeypatch, lambda arm: shift * math.exp(chance.gauss(0, spread)) if arm.name == "A/A" else 1.0, *checks)


@pytest.mark.parametrize(("noise", "least", "most"), [(0.002, 4, 6), (0.2, 15, 1000)])
def test_the_smallest_slowdown_that_can_be_shown_is_larger_on_a_noisy_machine(
    noise: float,
    least: float,
    most: float,
    doctor: Doctor,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """Nothing is recorded."""
    told(monkeypatch, noise)
    assert doctor() == 0
    out = capsys.readouterr().out
    assert out.startswith("ok     governor  performance\nA/A of tiny-fake-fp32-spin-plain: ")
    (line,) = [line for line in out.splitlines() if "honestly" in line]
    assert least < float(line.split(": ")[1].partition("%")[0]) < most
    assert "against a stored baseline: no case is called ok until 3 accepted sessions" in out
    assert not (tmp_path / "ipexperf.db").exists()


def test_a_machine_on_which_equal_arms_differ_can_detect_nothing(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its second arm is always slower."""
    told(monkeypatch, 0.002, 1.2)
    assert doctor() == 0
    out = capsys.readouterr().out
    assert "equal software was called different: do not trust a gate here" in out
    assert "honestly gate on" not in out


def test_a_wrong_finding_is_marked_and_ends_with_1(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that a pipeline can use it."""
    wrong = MachineFinding("turbo", "wrong", "on", "switch it off")
    found(monkeypatch, wrong, MachineFinding("AMX", "note", "not there"))
    assert doctor("--no-pairs") == 1
    assert capsys.readouterr().out == "WRONG  turbo  on: switch it off\nnote   AMX    not there\n"


def test_a_wrong_finding_ends_with_1_although_nothing_can_be_measured(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without torch no case can run. If all findings are fine, that is a usage error."""
    found(monkeypatch, MachineFinding("torch", "wrong", "not installed", "pip install torch"))
    assert doctor("--device", "cpu") == 1
    out, err = capsys.readouterr()
    first, second = out.replace("\n    ", " ").splitlines()
    assert first == "WRONG  torch  not installed: pip install torch"
    assert second.startswith("nothing was measured: ")
    assert err == ""
    found(monkeypatch, MachineFinding("torch", "ok", "2.8.0"))
    assert doctor("--device", "cpu") == cli.USAGE_ERROR
    assert capsys.readouterr().err == f"ipexperf: {second.partition(': ')[2]}\n"


def test_a_case_that_fails_says_nothing_of_the_machine(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told(monkeypatch, 0.002, 1.0, Check("dtype", ok=False, found="float32", expected="bf16"))
    assert doctor() == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "A/A of tiny-fake-fp32-spin-plain: invalid: dtype: found float32, expected bf16",
        "the smallest slowdown that this machine can show is unknown",
    ]

    def die(_: Arm) -> float:
        raise WorkerError("crashed", "killed by SIGSEGV")

    played(monkeypatch, die)
    assert doctor() == 0
    assert "is unknown" in capsys.readouterr().out
