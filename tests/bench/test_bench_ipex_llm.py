"""`ipex.llm.optimize` is proven by its layers, its operators and its cache, and liars are caught."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest
from bench_cases import alone

ROOT = Path(__file__).parents[2]


def installed() -> bool:
    """Whether IPEX is here, and the transformers that it knows."""
    try:
        known = importlib.metadata.version("transformers").startswith("4.51.")
    except importlib.metadata.PackageNotFoundError:
        return False
    return known and importlib.util.find_spec("intel_extension_for_pytorch") is not None


needs_both = pytest.mark.skipif(not installed(), reason="needs IPEX and transformers 4.51: .ci/run installs it")


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """What one process with IPEX found in each session."""
    found: dict[str, Any] = alone("ipex_llm.py", PYTHONPATH=f"{os.environ.get('PYTHONPATH', '')}{os.pathsep}{ROOT}")
    return found


@needs_both
@pytest.mark.parametrize("name", ["llama-prefill", "llama-decode", "qwen-decode"])
def test_fused_layers_are_proven_and_true_to_float64(told: dict[str, Any], name: str) -> None:
    checks = told[name]
    assert {check: found for check, (ok, found) in checks.items() if not ok} == {}
    assert {"llm_layers", "llm_operators", "tokens_read", "memory", "weights_held", "fidelity"} <= set(checks)
    assert checks["llm_layers"][1] == "2 of 2 layers are _IPEXDecoderLayerCPU"
    assert checks["tokens_read"][1] == f"{32 if name.endswith('prefill') else 2} tokens in each of 2 layers"


@needs_both
@pytest.mark.parametrize("name", ["llama-decode-bf16", "qwen-prefill-bf16"])
def test_fused_layers_are_proven_in_bf16(told: dict[str, Any], name: str) -> None:
    """IPEX then lays out weights in place: those of the head only if the embedding does not share them."""
    if name not in told:
        pytest.skip("this CPU has no instructions for bf16")
    checks = told[name]
    assert {check: found for check, (ok, found) in checks.items() if not ok} == {}
    assert {"dtype", "llm_operators", "memory", "weights_held", "fidelity"} <= set(checks)


@needs_both
def test_its_packed_weights_are_counted(told: dict[str, Any]) -> None:
    """Query, key and value of a layer are one packed layer. Whether their kernel multiplies is the machine's affair."""
    checks = told["packed"]
    assert checks["packed_weights"][0]
    assert "11 layers" in checks["packed_weights"][1]
    assert checks["packed_kernels"][1].startswith("11 of 11 layers in")


@needs_both
@pytest.mark.parametrize(
    ("liar", "caught"),
    [
        ("never optimised", {"llm_layers", "llm_operators", "tokens_read", "memory"}),
        ("without cache", {"memory"}),
        ("reading twice", {"tokens_read"}),
    ],
)
def test_liars_are_caught(told: dict[str, Any], liar: str, caught: set[str]) -> None:
    assert caught <= {check for check, (ok, _) in told[liar].items() if not ok}
