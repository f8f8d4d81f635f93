"""Compiled training on IPEX: its backend compiles both passes, its optimizers stay fused, and it learns."""

from __future__ import annotations

from typing import Any

import pytest
from bench_cases import alone, needs_ipex

from ipexperf.bench.machine import facts

pytestmark = [
    needs_ipex,
    pytest.mark.skipif(not facts.gather().compiler, reason="needs a C++ compiler"),
]


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """What one process with IPEX found in each training."""
    found: dict[str, Any] = alone("ipex_compiled_training.py")
    return found


@pytest.mark.parametrize(("name", "step"), [("sgd-fp32", "SGD: sgd_step"), ("adam-bf16", "Adam: adam_step")])
def test_a_compiled_training_keeps_its_proofs_and_learns(told: dict[str, Any], name: str, step: str) -> None:
    """In fp32, and in bf16 with split weights: IPEX's backend, code of both passes, and its fused step after them."""
    checks = told[name]
    assert {check: found for check, (ok, found) in checks.items() if not ok} == {}
    assert {"compile_backend", "lowering", "inductor", "compiled_step", "loss_curve", "accuracy"} <= set(checks)
    assert checks["fused_optimizer"] == [True, step]
    assert ("split_master_weight" in checks) == name.endswith("bf16")


def test_another_backend_under_the_label_is_caught(told: dict[str, Any]) -> None:
    """Inductor without IPEX's passes would be the training of another stack."""
    assert told["of stock"] == ["compile_backend"]
