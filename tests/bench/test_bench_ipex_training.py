"""Training with IPEX: which optimizers it fuses, how bf16 keeps its weights, and that all of them learn."""

from typing import Any

import pytest
from bench_cases import alone, failures, needs_ipex

from ipexperf.bench.machine import facts

pytestmark = needs_ipex

needs_compiler = pytest.mark.skipif(not facts.gather().compiler, reason="needs a C++ compiler")
FUSED = {
    "sgd": "SGD: sgd_step",
    "adagrad": "Adagrad: adagrad_step",
    "adam": "Adam: adam_step",
    "lamb": "Lamb: lamb_step",
}


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """What one process with IPEX found in a training of each kind."""
    return alone("ipex_training.py")


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("name", ["sgd", "adagrad", "adam", "adamw", "lamb"])
def test_every_optimizer_keeps_its_proofs_and_learns(results: dict[str, Any], name: str, dtype: str) -> None:
    """In fp32, and in bf16 with weights that are not packed, which any CPU can."""
    checks = results[f"{name}-{dtype}"]["checks"]
    assert failures(checks) == {}
    assert {"fused_optimizer", "loss_curve", "accuracy", "steps", "weights_move"} <= set(checks)


@pytest.mark.parametrize("name", FUSED)
def test_a_fused_optimizer_says_which_kernel_it_is(results: dict[str, Any], name: str) -> None:
    """The step is IPEX's own function, in either dtype, and there is nothing to note."""
    for dtype in ("fp32", "bf16"):
        assert results[f"{name}-{dtype}"]["checks"]["fused_optimizer"] == [True, FUSED[name]]
        assert results[f"{name}-{dtype}"]["notes"] == []


def test_adamw_is_proven_not_fused_and_labelled_so(results: dict[str, Any]) -> None:
    """On the CPU its step is stock PyTorch's, around which IPEX copies master weights in bf16; the launch says so."""
    assert results["adamw-fp32"]["checks"]["fused_optimizer"] == [True, "AdamW: Adam.step"]
    assert results["adamw-bf16"]["checks"]["fused_optimizer"][1].endswith(
        "master_param_non_fused_step around Adam.step"
    )
    for dtype in ("fp32", "bf16"):
        assert results[f"adamw-{dtype}"]["notes"] == ["IPEX fuses no AdamW on cpu: its updates are stock PyTorch's"]


def test_bf16_weights_are_split_where_the_optimizer_is_fused(results: dict[str, Any]) -> None:
    """The lower half lies in the optimizer; without a fused step there is a master copy instead."""
    split = {name: results[f"{name}-bf16"]["checks"]["split_master_weight"][1] for name in (*FUSED, "adamw")}
    assert split.pop("adamw") == "0 of 3 cast parameters split, 3 with a master copy"
    assert set(split.values()) == {"3 of 3 cast parameters split, 0 with a master copy"}


def test_fusing_can_be_switched_off(results: dict[str, Any]) -> None:
    """With fuse_update_step=off the proof wants a step that is not fused, and finds one."""
    assert results["unfused"]["checks"]["fused_optimizer"] == [True, "Adam: Adam.step"]


@pytest.mark.parametrize(
    ("made", "step", "kept"),
    [
        (
            "O0",
            "SGD: patch_step_for_master_weight_training.<locals>.master_param_non_fused_step around SGD.step",
            "0 of 3 cast parameters split, 3 with a master copy",
        ),
        ("O0, fused", "SGD: sgd_step", "0 of 3 cast parameters split, 3 with a master copy"),
        ("O0, split", "SGD: sgd_step", "3 of 3 cast parameters split, 0 with a master copy"),
    ],
)
def test_at_o0_ipex_does_what_is_switched_on_by_name(results: dict[str, Any], made: str, step: str, kept: str) -> None:
    """Nothing, a fused step alone, or a fused step over split weights: each proven, and each learns."""
    checks = results[made]["checks"]
    assert failures(checks) == {}
    assert (checks["fused_optimizer"][1], checks["split_master_weight"][1]) == (step, kept)


def test_an_optimizer_that_is_not_what_its_label_says_is_caught(results: dict[str, Any]) -> None:
    """Adam with its old step back, AdamW with a fused step, and split weights without their other half."""
    assert results["liars"] == {
        "unfused adam": ["fused_optimizer"],
        "fused adamw": ["fused_optimizer"],
        "whole sgd": ["split_master_weight"],
    }


@needs_compiler
@pytest.mark.parametrize(("name", "step"), [("sgd-fp32", "SGD: sgd_step"), ("adam-bf16", "Adam: adam_step")])
def test_a_compiled_training_keeps_its_proofs_and_learns(results: dict[str, Any], name: str, step: str) -> None:
    """In fp32, and in bf16 with split weights: IPEX's backend, code of both passes, and its fused step after them."""
    checks = results["compiled"][name]
    assert failures(checks) == {}
    assert {"compile_backend", "lowering", "inductor", "compiled_step", "loss_curve", "accuracy"} <= set(checks)
    assert checks["fused_optimizer"] == [True, step]
    assert ("split_master_weight" in checks) == name.endswith("bf16")


@needs_compiler
def test_another_backend_under_the_label_is_caught(results: dict[str, Any]) -> None:
    """Inductor without IPEX's passes would be the training of another stack."""
    assert failures(results["compiled"]["of stock"]).keys() == {"compile_backend"}
