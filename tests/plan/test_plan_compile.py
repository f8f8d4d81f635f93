"""The modes that compile, and the one that starts cold, in the plan: where they run, and why not elsewhere."""

from collections.abc import Iterable
from typing import Any

import plan_records
import pytest
from plan_records import CARDS, facts, ids

from ipexperf.bench import registry
from ipexperf.bench.api import TRAINING
from ipexperf.bench.cell import Cell
from ipexperf.bench.machine.facts import HEADERS, LEVEL_ZERO_H, PYTHON_H
from ipexperf.case import AXES
from ipexperf.errors import UsageError
from ipexperf.plan import groups, matrix

CELL: dict[str, Any] = {"model": ("resnet18",), "dtype": ("fp32",), "mode": ("infer_compile",), "stack": ("all",)}


def plan(compiler: str = "/usr/bin/g++", headers: Iterable[str] = HEADERS, **wishes: Any) -> matrix.Plan:
    here = facts(accelerators=CARDS, compiler=compiler, headers=frozenset(headers), cores=2)
    return plan_records.plan({**CELL, **wishes}, here)


@pytest.mark.parametrize("mode", ["infer_compile", "train_compile"])
def test_both_stacks_compile(mode: str) -> None:
    """IPEX has a backend of its own, and bf16 without packed weights needs no AVX-512 there."""
    assert ids(plan(mode=(mode,), dtype=("fp32", "bf16"))) == [
        f"resnet18-cpu-{dtype}-{mode}-{stack}" for dtype in ("fp32", "bf16") for stack in ("ipex", "stock")
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
    wishes = {"mode": (mode,), "stack": ("ipex",), "knobs": tuple(knobs.items())}
    assert reason in plan_records.refusal(plan, wishes)


@pytest.mark.parametrize(
    "knobs", [(("linear_bn_folding", "off"), ("conv_bn_folding", "off")), (("conv_bn_folding", "off"),)]
)
def test_folding_can_be_switched_off_together(knobs: tuple[tuple[str, str], ...]) -> None:
    """Without the folding of convolutions that of linear layers is a choice."""
    assert len(plan(mode=("infer",), stack=("ipex",), knobs=knobs).cases) == 1


def test_compiled_training_shares_the_rounds_of_eager_training_which_is_the_reference() -> None:
    """So that compiled over eager is a ratio of neighbouring turns."""
    [group] = groups.groups(plan(mode=("train", "train_compile")).cases)
    assert len(group.cases) == 4
    assert group.reference.id == "resnet18-cpu-fp32-train-stock"
    assert {groups.plain_mode(case) for case in group.cases} == {"train"}


@pytest.mark.parametrize(
    ("wishes", "sentence"),
    [
        ({"compiler": ""}, "torch.compile needs a C++ compiler"),
        (
            {"stack": ("stock",), "knobs": (("freezing", "on"),)},
            "training changes the weights, so they are no constants",
        ),
        ({"stack": ("ipex",), "knobs": (("weights_prepack", "on"),)}, "torch.compile breaks its graph at every packed"),
        ({"model": ("faster_rcnn",)}, "its norms are frozen"),
        ({"model": ("dlrm",), "stack": ("ipex",)}, "torch.compile cannot trace IPEX's kernel for the interaction"),
    ],
)
def test_what_cannot_train_compiled_is_refused_with_the_reason(wishes: dict[str, Any], sentence: str) -> None:
    assert sentence in plan_records.refusal(plan, {"mode": ("train_compile",), **wishes})


def test_every_model_that_trains_on_stock_trains_compiled_there() -> None:
    """Dynamo made one graph of each of them (torch 2.8), so none has a reason against this mode alone."""
    able: dict[str, set[str]] = {
        mode: {case.model for case in plan(model=("all",), mode=(mode,), stack=("stock",)).cases}
        for mode in ("train", "train_compile")
    }
    assert able["train"] == able["train_compile"]
    assert all(TRAINING not in registry.models.get(name).why_nots for name in able["train"])


def test_the_script_of_ipex_packs_no_weights_and_names_its_backend() -> None:
    """As PyTorch's recipe for the backend trains."""
    [case] = plan(mode=("train_compile",), stack=("ipex",)).cases
    lines = registry.modes.get(case.mode).script(
        Cell(*(getattr(case, axis) for axis in AXES)), registry.stacks.get(case.stack)
    )
    arguments = "model, optimizer=optimizer, weights_prepack=False, dtype=torch.float32"
    assert f"model, optimizer = ipex.optimize({arguments})" in lines
    assert 'model = torch.compile(model, backend="ipex")' in lines
