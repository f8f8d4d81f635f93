"""What IPEX has of its own for DLRM: it runs, computes the same, trains the same, and who only says so is caught."""

from typing import Any

import pytest
from bench_cases import alone, failures, needs_ipex

pytestmark = needs_ipex


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """What one process with IPEX found."""
    return alone("ipex_dlrm.py")


@pytest.mark.parametrize("kind", ["infer", "infer_jit", "train", "sgd"])
def test_every_check_holds_and_both_operators_ran(results: dict[str, Any], kind: str) -> None:
    """In inference, in a frozen graph, and in a training with either kind of update."""
    checks = results[kind]["checks"]
    # The rate of SGD is not made for so few steps, as with the model itself.
    unlearned = {"loss", "accuracy"} if kind == "sgd" else set()
    assert failures(checks).keys() <= unlearned
    ran = "torch_ipex::merged_embeddingbag_forward x1, torch_ipex::interaction_forward x1"
    assert checks["tuned_operators"] == [True, ran]


@pytest.mark.parametrize("kind", ["infer", "train"])
def test_the_tuned_network_answers_and_is_called_as_before(results: dict[str, Any], kind: str) -> None:
    """Its weights have the names of the untouched one, which loads them."""
    assert results["same"][kind]["off"] < 1e-5
    assert results["same"][kind]["names"]


def test_tables_that_update_themselves_are_told_apart(results: dict[str, Any]) -> None:
    """AdaGrad's fused bag has no optimizer; SGD has momentum, which IPEX's fused bag has not: there it is not used."""
    assert results["train"]["checks"]["updated_apart"][0]
    assert results["train"]["checks"]["fused_optimizer"] == [True, "Adagrad: adagrad_step"]
    note = "3 parameters are updated in the backward of MergedEmbeddingBagWithAdaGrad, by no optimizer"
    assert results["train"]["notes"] == [note]
    for kind in ("sgd", "accumulate"):
        assert "updated_apart" not in results[kind]["checks"]
        assert results[kind]["notes"] == []
    assert results["sgd"]["checks"]["fused_optimizer"] == [True, "SGD: sgd_step"]


@pytest.mark.parametrize("optimizer", ["adagrad", "sgd"])
def test_in_bf16_tables_are_trained_and_kept_in_fp32(results: dict[str, Any], optimizer: str) -> None:
    """IPEX casts tables behind the back of the bag that updates them, and finds no name of ours in its checkpoint."""
    if not results["bf16"]:
        pytest.skip("IPEX trains in bf16 with packed weights on CPUs with AVX-512")
    trained = results["bf16"][optimizer]
    unlearned = {"loss", "accuracy"} if optimizer == "sgd" else set()
    assert failures(trained["checks"]).keys() <= unlearned
    assert trained["kept"] == ["torch.float32"] * 3


def test_liars_are_caught(results: dict[str, Any]) -> None:
    """A network without IPEX's operators, tables that never move, and tables that move too far."""
    assert "tuned_operators" in results["untuned"]
    assert {"updated_apart", "weights_move"} <= set(results["still"])
    assert "loss_curve" in results["fast"]


@pytest.mark.parametrize("stack", ["stock", "ipex"])
def test_both_stacks_quantise_the_untouched_network(results: dict[str, Any], stack: str) -> None:
    """All linear layers, and no number of a row: IPEX asks where each example begins, torch.fx may not count."""
    converted = results["int8"][stack]
    assert converted["graph"] == [True, "5 of 5 layers quantised"]
    assert 0 < converted["off"] < 0.1
