"""Inference with IPEX: what torch.compile does with it, the cold start, and the knobs of linear layers."""

from typing import Any

import pytest
from bench_cases import alone, failures, needs_ipex

from ipexperf.bench.machine import facts

pytestmark = [
    needs_ipex,
    pytest.mark.skipif(not facts.gather().compiler, reason="needs a C++ compiler"),
]


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """What one process with IPEX proved of each."""
    return alone("ipex_inference.py", LD_PRELOAD="")


def test_a_network_is_compiled_by_ipexs_backend_through_inductor(results: dict[str, Any]) -> None:
    """One graph, whose code inductor wrote, given to IPEX's own backend, which does not take its way of TorchScript."""
    checks = results["compiled"]
    assert failures(checks) == {}
    assert checks["graphs"][1] == "1 graphs in 1 frames, 0 graph breaks"
    assert checks["compile_backend"][1] == "intel_extension_for_pytorch._dynamo.ipex"
    assert checks["lowering"][1] == "inductor"
    assert checks["weights_prepack"][1] == "0 prepacked modules"
    assert {"inductor", "compiled_step", "recompilation", "dtype", "fidelity"} <= set(checks)


def test_another_backend_is_caught(results: dict[str, Any]) -> None:
    """What inductor compiles alone, after `ipex.optimize`, is not the backend of the label."""
    assert failures(results["stock's backend"]).keys() == {"compile_backend"}


def test_packed_weights_break_the_graph_and_are_caught(results: dict[str, Any]) -> None:
    """It is why the knob weights_prepack is barred there: at every packed layer dynamo ends a graph."""
    assert {"graphs", "weights_prepack"} <= failures(results["packed"]).keys()


def test_a_cold_start_is_proven_like_infer_jit(results: dict[str, Any]) -> None:
    """What was loaded is packed, folded, frozen and fused, and right."""
    assert failures(results["load"]) == {}
    assert {"jit", "graph_prepack", "graph_fusion", "weights_prepack", "fidelity"} <= set(results["load"])


def test_a_product_in_another_dtype_beside_packed_layers_is_caught(results: dict[str, Any]) -> None:
    """oneDNN's log has the packed layers and not what torch computes by itself."""
    assert "dtype" in failures(results["mixed"])
    assert "bfloat16 x" in results["mixed"]["dtype"][1]  # twice where oneDNN computes it, whose log has it too


@pytest.mark.parametrize(
    ("made", "kernels", "folding"),
    [
        ("plain", "0 of 2", "0 of 1"),
        ("chosen", "2 of 2", "0 of 1"),
        ("unfolded", "0 of 2", "1 of 1"),
        ("linear alone", "0 of 2", "0 of 1"),
    ],
)
def test_the_knobs_of_linear_layers_are_proven(results: dict[str, Any], made: str, kernels: str, folding: str) -> None:
    """Packed layers call MKL, or oneDNN where it was asked for; BatchNorm behind them is folded, or left."""
    checks = results[made]
    assert failures(checks) == {}
    assert checks["auto_kernel_selection"][1] == f"{kernels} packed linear layers call oneDNN"
    assert checks["linear_bn_folding"][1] == f"{folding} BatchNorm modules behind a linear layer are left"


def test_a_norm_of_another_kind_is_none_that_could_be_folded(results: dict[str, Any]) -> None:
    """It may do more than normalise, so that IPEX leaves it; the case is right without."""
    assert failures(results["kindred"]) == {}
    assert results["kindred"]["conv_bn_folding"][1] == "0 BatchNorm modules"


def test_training_packs_linear_layers_only_where_kernels_are_chosen(results: dict[str, Any]) -> None:
    """Without the knob there is no packed layer to look at, and nothing to prove."""
    assert results["chosen, train"]["auto_kernel_selection"] == [True, "2 of 2 packed linear layers call oneDNN"]
    assert failures(results["not chosen, train"]).keys() == {"auto_kernel_selection"}


@pytest.mark.parametrize(
    ("liar", "check"),
    [
        ("not chosen", "auto_kernel_selection"),
        ("chosen in secret", "auto_kernel_selection"),
        ("not folded", "linear_bn_folding"),
        ("folded in secret", "linear_bn_folding"),
        ("O0, not folded", "conv_bn_folding"),
        ("O0, folded in secret", "conv_bn_folding"),
        ("O0, not packed", "weights_prepack"),
        ("O0, packed in secret", "weights_prepack"),
        ("O0, not captured", "graph_mode"),
    ],
)
def test_a_knob_that_is_not_as_labelled_is_caught(results: dict[str, Any], liar: str, check: str) -> None:
    """A network that was made in another way than its case says fails the check of that knob."""
    assert check in failures(results[liar])


@pytest.mark.parametrize(
    ("made", "packed", "left", "behind"),
    [
        ("O0", "0 prepacked modules", "1 of 1 BatchNorm modules are left", "1 of 1"),
        ("O0, folded", "0 prepacked modules", "0 BatchNorm modules", "0 of 1"),
        ("O0, linear folded", "0 prepacked modules", "1 of 1 BatchNorm modules are left", "0 of 1"),
        ("O0, packed", "3 prepacked modules", "1 of 1 BatchNorm modules are left", "1 of 1"),
        ("O0, chosen", "3 prepacked modules", "1 of 1 BatchNorm modules are left", "1 of 1"),
    ],
)
def test_at_o0_ipex_does_what_is_switched_on_by_name(
    results: dict[str, Any], made: str, packed: str, left: str, behind: str
) -> None:
    """Each setting alone, and nothing else: the folding of convolutions takes linear layers with it."""
    checks = results[made]
    assert failures(checks) == {}
    assert (checks["weights_prepack"][1], checks["conv_bn_folding"][1]) == (packed, left)
    assert checks["linear_bn_folding"][1].startswith(behind)


def test_at_o0_a_graph_is_captured_by_name(results: dict[str, Any]) -> None:
    """Graph mode is off at either level, and is switched on at either."""
    assert failures(results["O0, captured"]) == {}
    assert results["O0, captured"]["graph_mode"][1] == "forward is captured"


def test_without_intels_openmp_there_are_no_streams(results: dict[str, Any]) -> None:
    """The runtime extension is off, and the launch ends with that sentence: nothing runs in its place."""
    reason = "IPEX's runtime extension is off: Intel's OpenMP was not preloaded, and a launcher has to"
    assert results["streams"]["opened"][1] == reason
