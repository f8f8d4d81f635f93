"""`ipexperf cases --models`: what is told of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipexperf.bench import registry
from ipexperf.cli import main

SMALLNET = Path(__file__).parent / "fakes" / "smallnet.py"
needs_torch = pytest.mark.torch


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["cases", "--models", *arguments]) == 0
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


def test_what_makes_no_sense_is_told_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    plain = {"size": 1, "batch_train": 1, "batch_infer": 1}
    registry.model("fussy", **plain, why_nots={"train": "nothing is left to learn"})(object)
    assert "  not      train: nothing is left to learn\n" in told(capsys, "--model", "fussy")


def test_data_that_are_not_here_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    registry.model("elsewhere", size=1, batch_train=1, batch_infer=1, data="cifar10")(object)
    assert "missing: CIFAR-10 needs its folder: --perf-data=FOLDER" in told(capsys, "--model", "elsewhere")
