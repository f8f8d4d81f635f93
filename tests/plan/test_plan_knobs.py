"""Knobs: what is turned has a case of its own, what cannot be turned is left out or refused with the reason."""

from typing import Any

import plan_records
import pytest
from plan_records import AVX2, AVX512, FOR_CARDS, facts, ids

from ipexperf.errors import UsageError
from ipexperf.plan import matrix

CELL: dict[str, Any] = {"model": ("resnet18",), "dtype": ("fp32",), "mode": ("infer_jit",), "stack": ("ipex",)}
BASE = "resnet18-cpu-fp32-infer_jit-ipex"


def plan(flags: frozenset[str] = AVX512, accelerators: dict[str, str] | None = None, **wishes: Any) -> matrix.Plan:
    here = facts(FOR_CARDS if accelerators else None, flags, accelerators=accelerators or {})
    return plan_records.plan({**CELL, **wishes}, here)


def test_a_turned_knob_is_in_the_id_and_makes_another_case() -> None:
    """The same cell with a knob turned has another id and another uid."""
    (turned,) = plan(knobs=(("weights_prepack", "off"),)).cases
    (plain,) = plan().cases
    assert (plain.id, turned.id) == (BASE, f"{BASE}+weights_prepack:off")
    assert plain.uid != turned.uid


def test_a_default_that_is_spelled_out_is_the_same_case() -> None:
    """The same work has one uid, however it was asked for."""
    assert plan(knobs=(("weights_prepack", "on"), ("level", "O1"))).cases == plan().cases


def test_two_values_of_a_knob_are_a_sweep() -> None:
    """Each value is a case, and two knobs with two values each are four."""
    swept = plan(knobs=(("level", "O0"), ("level", "O1"), ("conv_bn_folding", "off"), ("conv_bn_folding", "on")))
    assert set(ids(swept)) == {
        BASE,
        f"{BASE}+level:O0",
        f"{BASE}+conv_bn_folding:off",
        f"{BASE}+conv_bn_folding:on+level:O0",
    }


def test_at_o0_off_is_the_default_and_on_is_a_case_of_its_own() -> None:
    """What a knob does by itself depends on the level: off at O0 is O0, and on is not."""
    level = ("level", "O0")
    (plain,) = plan(knobs=(level,)).cases
    assert plan(knobs=(level, ("conv_bn_folding", "off"), ("weights_prepack", "off"))).cases == (plain,)
    assert ids(plan(knobs=(level, ("conv_bn_folding", "on")))) == [f"{BASE}+conv_bn_folding:on+level:O0"]
    ablated = plan(knobs=(level,), ablate=("weights_prepack",))
    assert ids(ablated) == [plain.id, f"{plain.id}+weights_prepack:on"]


def test_at_o0_linear_layers_are_folded_with_convolutions() -> None:
    """The folding of convolutions takes them: asked for beside it, on is no other case, and off cannot be."""
    folded = (("level", "O0"), ("conv_bn_folding", "on"))
    assert plan(knobs=(*folded, ("linear_bn_folding", "on"))).cases == plan(knobs=folded).cases
    with pytest.raises(UsageError, match="changes nothing beside conv_bn_folding=on"):
        plan(knobs=(*folded, ("linear_bn_folding", "off")))


@pytest.mark.parametrize("unfused", [("fuse_update_step", "off"), ("level", "O0")])
def test_master_weights_are_split_only_by_a_fused_step(unfused: tuple[str, str]) -> None:
    """IPEX takes split weights without a fused step and does not split: off is the default then, on is refused."""
    wish: dict[str, Any] = {"dtype": ("bf16",), "mode": ("train",)}
    (plain,) = plan(**wish, knobs=(unfused,)).cases
    assert plan(**wish, knobs=(unfused, ("split_master_weight", "off"))).cases == (plain,)
    with pytest.raises(UsageError, match="IPEX splits no master weights without fuse_update_step=on"):
        plan(**wish, knobs=(unfused, ("split_master_weight", "on")))


def test_bf16_training_at_o0_needs_no_avx512_unless_weights_are_packed_by_name() -> None:
    """At O0 nothing is packed; switched on by name it asks for AVX-512 again."""
    wish: dict[str, Any] = {"flags": AVX2, "dtype": ("bf16",), "mode": ("train",)}
    assert ids(plan(**wish, knobs=(("level", "O0"),))) == ["resnet18-cpu-bf16-train-ipex+level:O0"]
    with pytest.raises(UsageError, match="IPEX bf16 needs a CPU with AVX-512"):
        plan(**wish, knobs=(("level", "O0"), ("weights_prepack", "on")))


def test_ablation_adds_one_case_a_knob() -> None:
    """Beside the whole case stand those with one knob off each, never two. A knob that is named twice counts once."""
    found = plan(ablate=("channels_last", "weights_prepack", "channels_last"))
    assert ids(found) == [BASE, f"{BASE}+channels_last:off", f"{BASE}+weights_prepack:off"]


def test_a_cell_that_does_not_have_the_knob_is_left_out_with_the_reason() -> None:
    """Stock has no prepacking to turn: that is said, and the stock cell is not run in silence as if it had."""
    found = plan(stack=("all",), knobs=(("weights_prepack", "off"),))
    assert ids(found) == [f"{BASE}+weights_prepack:off"]
    (left,) = found.left_out
    assert left.reason == "neither infer_jit nor stock has a knob weights_prepack"
    assert left.id == "resnet18-cpu-fp32-infer_jit-stock+weights_prepack:off"


def test_ablation_leaves_the_plain_case_of_a_stack_without_the_knob() -> None:
    """In an ablation over both stacks, stock's plain case stays, and only its ablated one is left out."""
    found = plan(stack=("all",), ablate=("weights_prepack",))
    stock = BASE.replace("ipex", "stock")
    assert set(ids(found)) == {BASE, f"{BASE}+weights_prepack:off", stock}
    assert [left.id for left in found.left_out] == [f"{stock}+weights_prepack:off"]


@pytest.mark.parametrize(
    ("wishes", "sentence"),
    [
        ({"knobs": (("weight_prepack", "off"),)}, "--perf-knobs: unknown knob 'weight_prepack': did you mean"),
        ({"knobs": (("level", "O7"),)}, "--perf-knobs: level: expected one of O1, O0, got 'O7'"),
        ({"ablate": ("channel_last",)}, "--perf-ablate: unknown knob 'channel_last': did you mean channels_last?"),
        ({"ablate": ("level",), "knobs": (("level", "O0"),)}, "level is set by --perf-knobs too"),
        ({"knobs": (("fuse_update_step", "off"),)}, "infer_jit has no knob fuse_update_step: it is for training"),
        (
            {"mode": ("train",), "knobs": (("split_master_weight", "off"),)},
            "the knob split_master_weight is for bf16, not for fp32",
        ),
        ({"mode": ("train",), "knobs": (("conv_bn_folding", "off"),)}, "IPEX folds nothing while BatchNorm is trained"),
        ({"mode": ("train",), "knobs": (("graph_mode", "on"),)}, "IPEX captures no graph of a training"),
        ({"knobs": (("graph_mode", "on"),)}, "infer_jit has no knob graph_mode: a trace bypasses the graph"),
        (
            {"mode": ("train",), "knobs": (("optimizer", "adamw"), ("fuse_update_step", "off"))},
            "the knob fuse_update_step would change nothing: IPEX fuses no adamw on cpu",
        ),
        ({"stack": ("stock",), "knobs": (("level", "O1"),)}, "neither infer_jit nor stock has a knob level"),
    ],
)
def test_a_knob_that_no_case_can_have_is_refused(wishes: dict[str, Any], sentence: str) -> None:
    """Unknown names, unknown values and settings that mean nothing in the cell end before anything is measured."""
    assert sentence in plan_records.refusal(plan, wishes)


def test_a_knob_that_ipex_ignores_on_the_device_is_refused() -> None:
    """IPEX takes weights_prepack on xpu and does nothing with it: asked for by name, that is an error."""
    with pytest.raises(UsageError, match="would change nothing on xpu: IPEX silently switches it off there"):
        plan(device=("xpu",), accelerators={"xpu": ""}, knobs=(("weights_prepack", "off"),))


def test_weights_are_split_for_sgd_alone_on_xpu() -> None:
    wish: dict[str, Any] = {"device": ("xpu",), "accelerators": {"xpu": ""}, "dtype": ("bf16",), "mode": ("train",)}
    knobs = (("split_master_weight", "off"),)
    assert len(plan(**wish, knobs=knobs).cases) == 1
    with pytest.raises(UsageError, match="would change nothing: IPEX splits no weights for adam on xpu"):
        plan(**wish, knobs=(("optimizer", "adam"), *knobs))


def test_bf16_training_without_prepacking_needs_no_avx512() -> None:
    """What IPEX demands AVX-512 for is prepacking: a bf16 training without it is planned on AVX2, others are not."""
    wish: dict[str, Any] = {"dtype": ("bf16",), "mode": ("train",), "knobs": (("weights_prepack", "off"),)}
    assert ids(plan(flags=AVX2, **wish)) == ["resnet18-cpu-bf16-train-ipex+weights_prepack:off"]
    for change in ({"knobs": ()}, {"mode": ("infer_jit",)}):
        with pytest.raises(UsageError, match="IPEX bf16 needs a CPU with AVX-512"):
            plan(flags=AVX2, **{**wish, **change})
