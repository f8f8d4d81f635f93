"""IPEX on xpu: what its own code does there with a network and an optimizer, on the fake card."""

from typing import Any

import pytest
from bench_cases import alone, failures, needs_ipex

pytestmark = [
    pytest.mark.torch,
    needs_ipex,
]

INFERENCE = ["infer, O0", "infer, not folded", "infer, packed"]


@pytest.fixture(scope="module")
def scenes() -> dict[str, Any]:
    """The checks of every scene, from one process."""
    return alone("ipex_xpu.py", ZE_AFFINITY_MASK="0")


@pytest.mark.parametrize("scene", ["infer", *INFERENCE])
def test_inference_keeps_its_label(scenes: dict[str, Any], scene: str) -> None:
    """Every check of a case holds: the device, the dtype, what was folded, and the accuracy."""
    checks = scenes[scene]
    assert failures(checks) == {}
    assert {"device", "arithmetic", "synchronised", "dtype", "conv_bn_folding", "fidelity"} <= set(checks)


def test_ipex_packs_no_weights_on_xpu(scenes: dict[str, Any]) -> None:
    """Not even if that was asked for by name; and what was not to be folded is there."""
    assert {scenes[scene]["weights_prepack"][1] for scene in INFERENCE} == {"0 prepacked modules"}
    assert {scenes[scene]["conv_bn_folding"][1] for scene in INFERENCE} == {"1 of 1 BatchNorm modules are left"}


def test_training_keeps_its_label(scenes: dict[str, Any]) -> None:
    """Every check holds, and the network learns; with a step that is stock PyTorch's, as was asked for."""
    checks = scenes["train, not fused"]
    assert failures(checks) == {}
    assert {"device", "arithmetic", "loss_curve", "weights_move"} <= set(checks)
    assert checks["fused_optimizer"][1] == "SGD: SGD.step"
