"""Inputs and device indices: what is asked for is planned, refused with its reason, or pinned in the workers."""

from typing import Any

import plan_records
import pytest
from plan_records import CARDS, facts, ids

from ipexperf.conduct.worker import ask_facts
from ipexperf.errors import UsageError
from ipexperf.plan import matrix
from ipexperf.plan.options import Options

CELL: dict[str, Any] = {"model": ("resnet18",), "dtype": ("fp32",), "mode": ("train",), "stack": ("stock",)}


def plan(**wishes: Any) -> matrix.Plan:
    return plan_records.plan({**CELL, **wishes}, facts(accelerators=CARDS))


def test_each_input_is_a_case_and_the_default_is_the_plain_one() -> None:
    """Several values are a sweep."""
    assert ids(plan(device=("xpu",), knobs=(("input", "device"), ("input", "host"), ("input", "loader")))) == [
        "resnet18-xpu-fp32-train-stock",
        "resnet18-xpu-fp32-train-stock+input:host",
        "resnet18-xpu-fp32-train-stock+input:loader",
    ]
    assert plan(knobs=(("input", "device"),)).cases == plan().cases


@pytest.mark.parametrize("mode", ["train", "infer", "infer_jit"])
def test_training_and_inference_have_inputs(mode: str) -> None:
    assert ids(plan(mode=(mode,), knobs=(("input", "loader"),))) == [f"resnet18-cpu-fp32-{mode}-stock+input:loader"]


@pytest.mark.parametrize(
    ("wishes", "sentence"),
    [
        ({"knobs": (("input", "host"),)}, "input=host equals input=device on cpu: the host's memory is the device's"),
        ({"knobs": (("input", "host"), ("input", "device"))}, "--perf-knobs input=host: input=host equals"),
        ({"knobs": (("input", "disk"),)}, "--perf-knobs: input: expected one of device, host, loader, got 'disk'"),
        (
            {"knobs": (("loader_workers", "4"),)},
            "the knob loader_workers is for input=loader: nothing else has a loader",
        ),
        ({"knobs": (("input", "loader"), ("loader_workers", "0"))}, "expected a whole number of at least 1, got '0'"),
        ({"ablate": ("input",)}, "the knob input has no 'off'"),
    ],
)
def test_an_input_that_means_nothing_is_refused(wishes: dict[str, Any], sentence: str) -> None:
    """Each with its reason, and with the option that asked for it, before anything is measured."""
    assert sentence in plan_records.refusal(plan, wishes)


def test_a_loader_has_as_many_processes_as_asked() -> None:
    """The number is a knob beside the input; its default is no other case."""
    found = plan(knobs=(("input", "loader"), ("loader_workers", "2"), ("loader_workers", "4")))
    base = "resnet18-cpu-fp32-train-stock+input:loader"
    assert ids(found) == [base, f"{base}+loader_workers:4"]


def test_the_index_pins_each_device_by_its_own_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """What facts are asked under is what the workers run under."""
    for name in ("ZE_AFFINITY_MASK", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    options = Options(device=("xpu", "cuda", "cpu"), indices={"xpu": 3, "cuda": 1})
    pinned = matrix.variables(options, matrix.accelerators(options))
    assert pinned == {"ZE_AFFINITY_MASK": "3", "CUDA_VISIBLE_DEVICES": "1"}
    assert matrix.variables(Options(), matrix.accelerators(Options())) == {}


def test_an_index_that_the_scheduler_did_not_give_us_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One card was left to us: the second of them is a user's mistake."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    with pytest.raises(UsageError, match="--device cuda:1: there is no such device"):
        matrix.variables(Options(indices={"cuda": 1}), ["cuda"])


@pytest.mark.process
def test_facts_are_asked_under_the_pin(tmp_path: Any) -> None:
    """The process that asks torch has the variables of the workers."""
    interpreter = tmp_path / "python"
    interpreter.write_text('#!/bin/sh\necho "pinned to $ZE_AFFINITY_MASK" >&2\nexit 1\n')
    interpreter.chmod(0o755)
    with pytest.raises(UsageError, match="pinned to 7"):
        ask_facts(str(interpreter), {"xpu": 0}, {"ZE_AFFINITY_MASK": "7"})


def test_fp16_training_is_left_out_on_a_card_without_float64() -> None:
    """Torch's gradient scaler computes in float64: what the card has not is told before anything is measured."""
    here = facts(accelerators=CARDS, cards={name: [{"float64": name == "cuda"}] for name in CARDS})
    with pytest.raises(UsageError, match="fp16 training needs float64 for its gradient scaler, which this xpu lacks"):
        plan_records.plan({**CELL, "device": ("xpu", "cuda"), "dtype": ("fp16",)}, here)
    found = plan_records.plan({**CELL, "device": ("all",), "dtype": ("fp16",)}, here)
    assert ids(found) == ["resnet18-cuda-fp16-train-stock"]
