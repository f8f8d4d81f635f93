"""Which changes of structure can only cost time, and which merely differ."""

from pathlib import Path
from typing import Any

import pytest
from judge_records import CONVOLUTION, compiled, nodes, operator, processor

from ipexperf.proof import losses
from ipexperf.proof.sections import Section, operators
from ipexperf.proof.structure import COMPARE

AVX512 = "Intel AVX-512 with Intel DL Boost and bfloat16 support"


def convolution(implementation: str, types: str = "src:f32 wei:f32 dst:f32", fused: str = "") -> dict[str, Any]:
    return {**CONVOLUTION, "implementation": implementation, "types": types, "fused": fused, "attributes": ""}


def ran(**calls: int) -> list[dict[str, Any]]:
    """Operators with these calls. `__` stands for `::`."""
    return [operator(name.replace("__", "."), count) for name, count in calls.items()]


def library(**created: int) -> dict[str, Any]:
    return {"created": dict(created), "unparsed": 0}


def linear(types: str) -> list[dict[str, Any]]:
    return [operator("aten.linear", 2, types)]


LOST = [
    (losses.WEAKER, "primitives", [convolution("brg:avx512_core_bf16")], [convolution("jit_bf16:avx512_core")]),
    (losses.WEAKER, "primitives", [convolution("brg:avx2+brg:avx2")], [convolution("jit:sse41+jit:avx")]),
    (losses.WEAKER, "processor", processor(onednn=AVX512), processor()),
    (losses.WEAKER, "processor", processor(aten="AVX512"), processor()),
    (losses.WEAKER, "primitives", [convolution("brgconv:sve_256")], [convolution("jit:asimd")]),
    (losses.REFERENCE, "primitives", [convolution("indirect_gemm:acl")], [convolution("gemm:ref")]),
    (losses.REFERENCE, "primitives", [convolution("brg:avx2")], [convolution("ref:any")]),
    (losses.REFERENCE, "primitives", [convolution("jit:uni")], [convolution("simple:any")]),
    (
        losses.WIDER,
        "primitives",
        [convolution("brg:avx512_core_bf16", "src:bf16 wei:bf16 bia:f32 dst:bf16")],
        [convolution("brg:avx512_core")],
    ),
    (losses.WIDER, "operators", linear("bfloat16, bfloat16"), linear("float32, float32")),
    (losses.UNFUSED, "primitives", [convolution("jit:avx2", fused="eltwise_relu")], [convolution("jit:avx2")]),
    (
        losses.UNFUSED,
        "graph",
        nodes(ipex_prepack__convolution_relu_run=2),
        nodes(ipex_prepack__convolution_run=2, aten__relu=2),
    ),
    (
        losses.UNFUSED,
        "operators",
        ran(torch_ipex__interaction_forward=1),
        ran(aten__bmm=1, aten__cat=1),
    ),
    (losses.UNPACKED, "graph", nodes(ipex_prepack__convolution_run=2), nodes(aten___convolution=2)),
    (losses.UNPACKED, "operators", ran(torch_ipex__ipex_linear=3), ran(aten__linear=3)),
    (losses.UNFROZEN, "graph", nodes(aten___convolution=1), nodes(aten___convolution=1, prim__GetAttr=3)),
    (losses.UNFOLDED, "operators", ran(aten__conv2d=2), ran(aten__conv2d=2, aten__batch_norm=2)),
    (losses.OBSERVER, "operators", ran(aten__relu=2), ran(aten__relu=2, aten__aminmax=1)),
    (losses.OPTIMISER, "operators", ran(torch_ipex__sgd_fused_step=9), ran(aten__add_=9, aten__mul_=9)),
    (losses.OPTIMISER, "operators", ran(aten___fused_adamw_=1), ran(aten___foreach_add_=1)),
    (
        losses.ATTENTION,
        "operators",
        ran(aten___scaled_dot_product_flash_attention=12),
        ran(aten___scaled_dot_product_attention_math=12),
    ),
    (losses.BROKEN, "compiled", compiled(0), compiled(2)),
    (losses.FALLBACK, "graph", nodes(aten__relu=1), nodes(aten__relu=1, prim__FallbackGraph=1)),
    (
        losses.WAIT,
        "kernels",
        [{"kernel": "gemm", "calls": 3}],
        [{"kernel": "gemm", "calls": 3}, {"kernel": "Memcpy DtoH (Device -> Pageable)", "calls": 1}],
    ),
    (losses.ANEW, "library", library(**{"create:cache_hit": 4}), library(**{"create:cache_miss": 4})),
]


def kinds(section: str, old: Any, new: Any) -> set[str]:
    return {change.loss for change in COMPARE[section](Section(old), Section(new))} - {""}


@pytest.mark.parametrize(("kind", "section", "old", "new"), LOST)
def test_a_loss_is_named_and_the_reverse_change_is_no_loss(kind: str, section: str, old: Any, new: Any) -> None:
    assert kinds(section, old, new) == {kind}
    assert kinds(section, new, old) == set()


def test_the_docs_have_each_kind() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/fingerprint.md").read_text()
    assert [row[0] for row in LOST if f"| {row[0]} | " not in page] == []


DIFFERENT = [
    ("primitives", [convolution("brg_conv_fwd:avx512_core")], [convolution("jit:avx512_core")]),
    ("primitives", [convolution("jit:avx2")], [convolution("gemm:jit")]),
    ("primitives", [convolution("jit:avx2")], [convolution("brg:avx99_future")]),
    ("primitives", [convolution("ref:any")], [convolution("simple:any")]),
    ("primitives", [], [convolution("ref:any")]),
    ("primitives", [convolution("jit:avx2", fused="sum")], [convolution("jit:avx2", fused="eltwise_relu")]),
    ("processor", processor(), processor(onednn="")),
    ("processor", processor(), processor(onednn="Intel AVX11")),
    ("processor", {**processor(), "threads": 4}, processor()),
    ("operators", ran(torch_ipex__ipex_linear=3), ran(torch_ipex__better_linear=3)),
    ("operators", ran(aten___fused_adamw_=1), ran(aten___fused_adamw_=2)),
    ("operators", ran(aten__batch_norm=1), ran(aten__batch_norm=2)),
    ("operators", ran(aten__linear=4), ran(aten__linear=2, aten__contiguous=1)),
    ("compiled", compiled(2), {**compiled(2), "graphs": 3}),
    ("library", library(**{"create:cache_hit": 4}), library(**{"create:cache_hit": 9})),
    ("flops", 10, 20),
]


@pytest.mark.parametrize(("section", "old", "new"), DIFFERENT)
def test_a_change_that_may_cost_nothing_is_no_loss(section: str, old: Any, new: Any) -> None:
    """Another kernel, a name in no table, more of the same calls: only a measurement can tell."""
    assert COMPARE[section](Section(old), Section(new))
    assert kinds(section, old, new) == set()


def test_a_softmax_in_a_wider_dtype_is_no_loss() -> None:
    """Only where a step spends its arithmetic is a wider dtype a loss. Elsewhere accuracy may need it."""
    sides = [[{**one, "operator": "aten::softmax"} for one in linear(types)] for types in ("bfloat16", "float32")]
    assert [change.loss for change in operators(*map(Section, sides))] == [""]
