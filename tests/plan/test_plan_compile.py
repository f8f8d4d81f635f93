"""The modes that compile, and the one that starts cold, in the plan: where they run, and why not elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import plan_records
import pytest
from plan_records import CARDS, facts, ids

from ipexperf.bench.machine.facts import HEADERS, LEVEL_ZERO_H, PYTHON_H
from ipexperf.errors import UsageError
from ipexperf.plan import matrix

CELL: dict[str, Any] = {"model": ("resnet18",), "dtype": ("fp32",), "mode": ("infer_compile",), "stack": ("all",)}


def plan(compiler: str = "/usr/bin/g++", headers: Iterable[str] = HEADERS, **wishes: Any) -> matrix.Plan:
    here = facts(accelerators=CARDS, compiler=compiler, headers=frozenset(headers))
    return plan_records.plan({**CELL, **wishes}, here)


def test_both_stacks_compile() -> None:
    """IPEX has a backend of its own, and bf16 without packed weights needs no AVX-512 there."""
    assert ids(plan(dtype=("fp32", "bf16"))) == [
        f"resnet18-cpu-{dtype}-infer_compile-{stack}" for dtype in ("fp32", "bf16") for stack in ("ipex", "stock")
    ]


def test_on_xpu_compiling_needs_a_header_of_the_driver() -> None:
    """Triton builds its driver from it. Other devices do not, and eager modes do not."""
    wish: dict[str, Any] = {"stack": ("stock",), "device": ("xpu", "cuda"), "mode": ("infer", "infer_compile")}
    assert len(plan(**wish).cases) == 4
    found = plan(headers=[PYTHON_H], **wish)
    assert [left.id for left in found.left_out] == ["resnet18-xpu-fp32-infer_compile-stock"]
    assert "needs the header level_zero/ze_api.h: install libze-dev" in found.left_out[0].reason


@pytest.mark.parametrize("device", ["cpu", "xpu", "cuda"])
def test_compiling_needs_pythons_header_on_every_device(device: str) -> None:
    """Inductor's kernels for the CPU and Triton's drivers for cards are modules of Python; an export is none."""
    wish: dict[str, Any] = {"stack": ("stock",), "headers": [LEVEL_ZERO_H]}
    with pytest.raises(UsageError, match=r"needs the header Python\.h: install python3-dev, or name"):
        plan(device=(device,), **wish)
    assert ids(plan(mode=("infer_export",), **wish)) == ["resnet18-cpu-fp32-infer_export-stock"]


@pytest.mark.parametrize("mode", ["infer_compile", "infer_export"])
def test_without_a_compiler_nothing_compiles(mode: str) -> None:
    """The reason is told before anything is measured, and the other modes stay."""
    with pytest.raises(UsageError, match="needs a C\\+\\+ compiler: no g\\+\\+ in PATH"):
        plan(compiler="", mode=(mode,))
    assert ids(plan(compiler="", mode=("infer",), stack=("stock",))) == ["resnet18-cpu-fp32-infer-stock"]


def test_export_is_stock_pytorchs_on_the_cpu() -> None:
    """IPEX has no export of its own, and other devices are told that it is not built for them."""
    found = plan(mode=("infer_export",))
    assert ids(found) == ["resnet18-cpu-fp32-infer_export-stock"]
    assert [left.reason.split(":")[0] for left in found.left_out] == ["IPEX has no export path of its own"]
    with pytest.raises(UsageError, match="infer_export is built for cpu, not for cuda"):
        plan(mode=("infer_export",), device=("cuda",))


@pytest.mark.parametrize(
    ("mode", "knobs", "reason"),
    [
        ("infer_compile", {"weights_prepack": "off"}, "has no knob weights_prepack: torch.compile breaks its graph at"),
        ("infer_compile", {"graph_mode": "on"}, "has no knob graph_mode: torch.compile captures the graph itself"),
        ("infer_compile", {"auto_kernel_selection": "on"}, "it chooses kernels of packed layers, and there are none"),
        ("infer", {"linear_bn_folding": "off"}, "changes nothing beside conv_bn_folding=on, which folds linear layers"),
        ("infer", {"auto_kernel_selection": "on", "weights_prepack": "off"}, "with weights_prepack=off there are none"),
        ("infer", {"auto_kernel_selection": "on", "level": "O0"}, "and with level=O0 there are none"),
        ("load", {"input": "loader"}, "neither load nor ipex has a knob input"),
    ],
)
def test_a_knob_that_would_change_nothing_is_refused(mode: str, knobs: dict[str, str], reason: str) -> None:
    """Asked for by name, it ends before anything is measured, with the reason."""
    with pytest.raises(UsageError) as refused:
        plan(mode=(mode,), stack=("ipex",), knobs=tuple(knobs.items()))
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    "knobs", [(("linear_bn_folding", "off"), ("conv_bn_folding", "off")), (("conv_bn_folding", "off"),)]
)
def test_folding_can_be_switched_off_together(knobs: tuple[tuple[str, str], ...]) -> None:
    """Without the folding of convolutions that of linear layers is a choice."""
    assert len(plan(mode=("infer",), stack=("ipex",), knobs=knobs).cases) == 1
