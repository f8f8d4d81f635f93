"""Training in the plan: its optimizers, gradients that are accumulated, and the ranks of a data-parallel one."""

from typing import Any

import plan_records
import pytest
from plan_records import AVX512, CARDS, FOR_CARDS, facts, ids

from ipexperf.plan import matrix

CELL: dict[str, Any] = {"model": ("resnet18",), "dtype": ("fp32",), "mode": ("train",), "stack": ("ipex",)}
CARD = {"name": "one", "float64": True}
BASE = "resnet18-cpu-fp32-train-ipex"


def plan(
    cores: int = 4, packages: dict[str, str] | None = None, cards: tuple[Any, ...] = (CARD, CARD), **wishes: Any
) -> matrix.Plan:
    has = {"xpu": [CARD], "cuda": list(cards)}
    here = facts(packages, AVX512 | {"avx512_fp16"}, accelerators=CARDS, cores=cores, cards=has)
    return plan_records.plan({**CELL, **wishes}, here)


def test_each_optimizer_that_is_asked_for_is_a_case() -> None:
    """The default has no name in the id, and the others have theirs."""
    assert ids(plan(knobs=(("optimizer", "sgd"), ("optimizer", "adamw"), ("optimizer", "lamb")))) == [
        f"{BASE}+optimizer:adamw",
        f"{BASE}+optimizer:lamb",
        BASE,
    ]


@pytest.mark.parametrize(
    ("wishes", "sentence"),
    [
        (
            {"knobs": (("optimizer", "adma"),)},
            "--perf-knobs: optimizer: expected one of sgd, adagrad, adam, adamw, lamb, got 'adma'",
        ),
        ({"knobs": (("optimizer", "adam"),), "mode": ("infer",)}, "neither infer nor ipex has a knob optimizer"),
        ({"ablate": ("optimizer",)}, "the knob optimizer has no 'off'"),
        ({"knobs": (("accumulate", "0"),)}, "accumulate: expected a whole number of at least 1, got '0'"),
        (
            {
                "device": ("xpu",),
                "dtype": ("fp16",),
                "packages": FOR_CARDS,
            },
            "IPEX refuses fp16 training on xpu: its devices do not support training with half precision",
        ),
        ({"dtype": ("fp16",)}, "fp16 training on a CPU skips every step of its gradient scaler: use bf16"),
        (
            {"mode": ("train_ddp",), "knobs": (("ranks", "5"),)},
            "resnet18 cannot run here: 5 ranks need as many cores, but only 4 may be used here",
        ),
        ({"mode": ("train_ddp",), "cores": 1}, "2 ranks need as many cores, but only 1 may be used here"),
        (
            {"mode": ("train_ddp",), "device": ("xpu",), "stack": ("stock",)},
            "2 ranks need as many xpu devices, and there is 1",
        ),
        (
            {"mode": ("train_ddp",), "device": ("cuda",), "stack": ("stock",), "knobs": (("ranks", "3"),)},
            "3 ranks need as many cuda devices, and there are 2",
        ),
        (
            {
                "mode": ("train_ddp",),
                "device": ("cuda",),
                "stack": ("stock",),
                "cards": (CARD, {**CARD, "name": "another"}),
            },
            "ranks need equal cuda devices, and these are one and another",
        ),
        (
            {"mode": ("train_ddp",), "knobs": (("backend", "ccl"),)},
            "resnet18 cannot run here: oneccl_bind_pt not installed in /env/bin/python",
        ),
        (
            {"mode": ("train_ddp",), "stack": ("stock",), "device": ("cuda",), "knobs": (("backend", "ccl"),)},
            "oneCCL is for cpu and xpu, not for cuda",
        ),
    ],
)
def test_what_no_training_can_have_is_refused_with_the_reason(wishes: dict[str, Any], sentence: str) -> None:
    """Names that don't exist, optimizers that a stack lacks, and ranks that have no core end before anything runs."""
    assert sentence in plan_records.refusal(plan, wishes)


def test_lamb_is_left_out_on_stock_and_runs_on_ipex() -> None:
    """Asked of both stacks, it is a case of one, and the other says why."""
    found = plan(stack=("all",), knobs=(("optimizer", "lamb"),))
    assert ids(found) == [f"{BASE}+optimizer:lamb"]
    assert [left.reason for left in found.left_out] == ["Lamb comes with IPEX: the stack stock has none"]


def test_ranks_and_their_backend_are_knobs() -> None:
    """Two ranks on gloo are the default; four, and oneCCL where it is installed, are other cases."""
    base = BASE.replace("train", "train_ddp")
    assert ids(plan(mode=("train_ddp",))) == [base]
    swept = plan(
        mode=("train_ddp",),
        knobs=(("ranks", "2"), ("ranks", "4"), ("backend", "ccl")),
        packages={"oneccl_bind_pt": "2.8.0"},
    )
    assert set(ids(swept)) == {f"{base}+backend:ccl", f"{base}+backend:ccl+ranks:4"}


def test_a_data_parallel_training_has_the_knobs_of_a_training() -> None:
    """What IPEX does for training it does in each rank: no packing, in bf16 without AVX-512, with any optimizer."""
    found = plan(
        mode=("train_ddp",),
        dtype=("bf16",),
        knobs=(("optimizer", "adam"), ("weights_prepack", "off"), ("split_master_weight", "off"), ("accumulate", "2")),
    )
    name = "accumulate:2+optimizer:adam+split_master_weight:off+weights_prepack:off"
    assert ids(found) == [f"resnet18-cpu-bf16-train_ddp-ipex+{name}"]
