"""`ipexperf ab` refuses an arm that cannot be, before anything is measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ipexperf import cli
from ipexperf.bench.facts import Facts
from ipexperf.conduct import worker

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.usefixtures("registries")

CELL = ("--model", "tiny", "--device", "fake", "--dtype", "fp32", "--mode", "spin", "--stack", "plain")


@pytest.mark.parametrize(
    ("arm", "told"),
    [
        (("--b", "device=gpu"), "arm b: unknown device 'gpu': did you mean cuda or xpu?"),
        (("--a", "dtype=fp17"), "arm a: unknown dtype 'fp17': did you mean fp16?"),
        (("--b", "stack=stock"), "arm b: tiny-fake-fp32-spin-stock cannot run: "),
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


def test_a_mode_that_is_timed_cold_is_refused(fake: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is timed once a process cannot take turns."""
    cold = Path(__file__).parent / "fakes" / "cold.py"
    cell = [word.replace("spin", "start") for word in CELL]
    assert cli.main(["ab", f"--perf-load={fake}", f"--perf-load={cold}", *cell]) == cli.USAGE_ERROR
    reason = "start is timed once a process, and the workers of ab take many turns"
    assert capsys.readouterr().err == f"ipexperf: arm a: tiny-fake-fp32-start-plain cannot run: {reason}\n"


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
