"""Compiled training in the plan: beside eager training, where it runs, and why not elsewhere."""

from __future__ import annotations

from typing import Any

import plan_records
import pytest
from plan_records import CARDS, facts, ids

from ipexperf.bench import registry
from ipexperf.bench.api import TRAINING, Cell
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import AXES
from ipexperf.errors import UsageError
from ipexperf.plan import groups, matrix

CELL: dict[str, Any] = {"model": ("resnet18",), "dtype": ("fp32",), "mode": ("train_compile",), "stack": ("all",)}


def here(compiler: str = "/usr/bin/g++") -> Facts:
    return facts(accelerators=CARDS, compiler=compiler, cores=2)


def plan(compiler: str = "/usr/bin/g++", **wishes: Any) -> matrix.Plan:
    return plan_records.plan({**CELL, **wishes}, here(compiler))


def test_both_stacks_train_compiled() -> None:
    """In bf16 too: what needs AVX-512 is packing weights, and compiled code has none."""
    assert ids(plan(dtype=("fp32", "bf16"))) == [
        f"resnet18-cpu-{dtype}-train_compile-{stack}" for dtype in ("fp32", "bf16") for stack in ("ipex", "stock")
    ]


def test_it_shares_the_rounds_of_eager_training_which_is_the_reference() -> None:
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
    with pytest.raises(UsageError) as refused:
        plan(**wishes)
    assert sentence in str(refused.value)


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
    [case] = plan(stack=("ipex",)).cases
    lines = registry.modes.get(case.mode).script(
        Cell(*(getattr(case, axis) for axis in AXES)), registry.stacks.get(case.stack)
    )
    arguments = "model, optimizer=optimizer, weights_prepack=False, dtype=torch.float32"
    assert f"model, optimizer = ipex.optimize({arguments})" in lines
    assert 'model = torch.compile(model, backend="ipex")' in lines
