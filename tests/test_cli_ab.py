"""`ipexperf ab` refuses an arm that cannot be, before anything is measured."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ipexperf.run  # noqa: F401 - a room that keeps ask_facts by name, before a test replaces it
from ipexperf import cli
from ipexperf.bench.facts import Facts
from ipexperf.case import Case
from ipexperf.commands.ab import parse_arm
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
        (
            ("--b", "weight_prepack=off"),
            "arm 'weight_prepack=off': unknown axis or knob 'weight_prepack': did you mean",
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
    case, reason = parse_arm(arm).case(CASE, HERE)
    assert reason is None
    assert case.id == (CASE.id.replace("infer_jit", "infer") if turned is None else CASE.id + turned)
    assert (case.batch, case.size, case.data) == (32, 32, "digits")


def test_an_arm_turns_a_planned_knob_back_and_keeps_the_placement() -> None:
    """What both arms were asked for by --perf-knobs holds unless an arm says otherwise."""
    planned = dataclasses.replace(CASE, knobs=(("level", "O0"), ("placement", "cores=0")))
    assert parse_arm("").case(planned, HERE) == (planned, None)
    assert parse_arm("level=O1").case(planned, HERE)[0].knobs == (("placement", "cores=0"),)


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
    reason = parse_arm(arm).case(CASE, HERE)[1]
    assert reason is not None
    assert told in reason


def test_a_variable_has_capitals_and_a_knob_has_none() -> None:
    """A knob is no variable of the worker, and a variable is no knob."""
    words = parse_arm("OMP_NUM_THREADS=1 weights_prepack=off dtype=bf16")
    assert dict(words.variables) == {"OMP_NUM_THREADS": "1"}
    assert dict(words.knobs) == {"weights_prepack": "off"}
    assert dict(words.axes) == {"dtype": "bf16"}


def test_a_mode_that_is_timed_cold_is_refused(fake: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is timed once a process cannot take turns."""
    cold = Path(__file__).parent / "fakes" / "cold.py"
    cell = [word.replace("spin", "start") for word in CELL]
    assert cli.main(["ab", f"--perf-load={fake}", f"--perf-load={cold}", *cell]) == cli.USAGE_ERROR
    reason = "start is timed once a process, and the workers of ab take many turns"
    assert capsys.readouterr().err == f"ipexperf: arm a: tiny-fake-fp32-start-plain cannot run: {reason}\n"


def test_forked_workers_are_refused(fake: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Workers of one server are no replicates that were drawn anew."""
    assert cli.main(["ab", f"--perf-load={fake}", *CELL, "--perf-start", "fork"]) == cli.USAGE_ERROR
    told = "--perf-start: pairs of fresh processes are what ab compares: leave it at fresh"
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
