"""`ipexperf models`: what is told of each, with and without a look at it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lease_holder import Holder

from ipexperf.bench import registry
from ipexperf.cli import USAGE_ERROR, main

SMALLNET = Path(__file__).parent / "fakes" / "smallnet.py"
needs_torch = pytest.mark.torch


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["models", *arguments]) == 0
    return capsys.readouterr().out


def test_every_model_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """With its task and metric, its data and their licence, sizes and batches."""
    out = told(capsys)
    assert [line for line in out.splitlines() if line and not line.startswith(" ")] == list(registry.models.names())
    shown = out[out.index("resnet50\n") :]
    for line in (
        "  task     classification: share of right answers",
        "  data     digits, ",
        "  size     32 x 32, normal 224 x 224",
        "  batch    train 64, infer 32, full: int8 80, fp32 160, bf16 112",
    ):
        assert line in shown
    assert "parameters" not in out


def test_what_makes_no_sense_is_told_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    plain = {"size": 1, "batch_train": 1, "batch_infer": 1}
    registry.model("fussy", **plain, why_nots={"train": "nothing is left to learn"})(object)
    assert "  not      train: nothing is left to learn\n" in told(capsys, "--model", "fussy")


def test_data_that_are_not_here_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    registry.model("elsewhere", size=1, batch_train=1, batch_infer=1, data="cifar10")(object)
    assert "missing: CIFAR-10 needs its folder: --perf-data=FOLDER" in told(capsys, "--model", "elsewhere")


def test_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """What was not measured is null there, and no number."""
    [found] = json.loads(told(capsys, "--model", "resnet18", "--json"))
    assert (found["name"], found["task"], found["data"]) == ("resnet18", "classification", "digits")
    assert (found["parameters"], found["flops"], found["measured_at"]) == (None, None, None)


@pytest.mark.process
@needs_torch
def test_a_look_counts_parameters_and_arithmetic(capsys: pytest.CaptureFixture[str]) -> None:
    """In a worker of its own, at the size that is asked for."""
    asked = ("--model", "smallnet", f"--perf-load={SMALLNET}", "--measure", "--json")
    [found] = json.loads(told(capsys, *asked))
    assert (found["parameters"], found["flops"]) == (1570, 2 * 36 * 4 * 27 + 2 * 1440)
    assert found["measured_at"] == "8 x 8"


@pytest.mark.process
@needs_torch
def test_what_cannot_be_measured_is_told_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """The others are listed with their numbers, and the command does not fail."""
    assert main(["models", "--model", "smallnet", f"--perf-load={SMALLNET}", "--measure", "--perf-size", "3"]) == 0
    out, err = capsys.readouterr()
    assert "smallnet was not measured: " in err
    assert "parameters" not in out


@pytest.mark.process
@needs_torch
def test_nothing_is_counted_beside_what_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """The network runs on all cores for it. Who only lists waits for nobody."""
    words = ["models", "--model", "smallnet", f"--perf-load={SMALLNET}", "--perf-lease", "fail"]
    with Holder("cpu") as other:
        other.held()
        assert main([*words, "--measure"]) == USAGE_ERROR
        assert "the CPU is not free" in capsys.readouterr().err
        assert main(words) == 0
