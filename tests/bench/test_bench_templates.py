"""Products that inductor wrote itself: found in its code by their templates, with the dtypes of their operands."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from ipexperf.bench.api import Kernel
from ipexperf.proof import compilation, quantised, templates

QUANTISE = """
cpp_fused_quantize_per_tensor_0 = async_compile.cpp_pybinding(['const float*', 'uint8_t*'], r'''
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       uint8_t* out_ptr0)
{
}
''')
"""
PRODUCT = """
{name} = async_compile.cpp_pybinding(['const {a}*', 'const {b}*', 'float*'], r'''
#include <torch/csrc/inductor/cpp_prefix.h>
#include <c10/util/Unroll.h>

template <int64_t M, int64_t N, bool accum>
inline void kernel_micro_gemm_kernel(
    const {a}* __restrict__ A,
    const {b}* __restrict__ B,
    int32_t* __restrict__ C,
    int64_t K
) {{
    __m512i va;
}}

template <bool accum, bool prefetch=false>
inline void kernel_micro_gemm(
    {first}const {a}* __restrict__ A,
    const {b}* __restrict__ B,
    int32_t* __restrict__ C,
    int64_t M
) {{
}}

extern "C"
void {function}(const {a}* X, const {b}* W, float* Y)
{{
}}
''')
"""
CALL = """
async_compile.wait(globals())
def call(args):
    arg12_1, = args
    with torch.no_grad():
        # Topologically Sorted Source Nodes: [linear_1], Original ATen: [quantized_decomposed.quantize_per_tensor]
        cpp_fused_quantize_per_tensor_0(arg12_1, buf0)
"""
"""In the form in which torch 2.14 writes it, shortened."""


TRITON = """
triton_tem_fused_addmm_0 = async_compile.triton('triton_tem_fused_addmm_0', '''
import triton

@triton_heuristics.template(

num_stages=3,
triton_meta={{'signature': {{'in_ptr0': '*fp32', {operands}, 'out_ptr0': '*fp32'}}, 'constants': {{}}}},

)
@triton.jit
def triton_tem_fused_addmm_0(in_ptr0, arg_A, arg_B, out_ptr0):
    {body}
''', device_str='cuda')
"""
"""In the form in which torch 2.11 wrote it for an H200, shortened."""
POINTWISE = """
triton_poi_fused_relu_1 = async_compile.triton('triton_poi_fused_relu_1', '''
@triton_heuristics.pointwise(
triton_meta={'signature': {'in_out_ptr0': '*bf16', 'arg_A': '*bf16'}},
)
''', device_str='cuda')
"""


def product(a: str, b: str, name: str = "cpp_fused_addmm_1", function: str = "kernel", first: str = "") -> str:
    return PRODUCT.format(name=name, a=a, b=b, function=function, first=first)


def call(*names: str) -> str:
    return CALL + "".join(f"        {name}(buf0, constant17, buf1)\n" for name in names)


@pytest.mark.parametrize("first", ["", "AMXState& amx_state,\n    "])
@pytest.mark.parametrize(
    ("a", "b", "operands"),
    [
        ("uint8_t", "int8_t", ("uint8", "int8")),
        ("float", "float", ("float32", "float32")),
        ("at::BFloat16", "at::BFloat16", ("bfloat16", "bfloat16")),
        ("half", "half", ("float16", "float16")),
        # packed weights are converted inside
        ("bfloat16", "uint8_t", ("bfloat16",)),
        ("float", "int8_t", ("float32",)),
    ],
)
def test_a_product_has_the_dtypes_of_its_operands(a: str, b: str, operands: tuple[str, ...], first: str) -> None:
    """Code that only quantises is no product. The template for AMX takes the state of the tiles before its operands."""
    code = QUANTISE + product(a, b, first=first) + call("cpp_fused_addmm_1")
    assert templates.kernels(code) == [Kernel(templates.LAYER, operands)]


@pytest.mark.parametrize(
    ("operands", "body", "kernel"),
    [
        ("'arg_A': '*bf16', 'arg_B': '*bf16'", "", Kernel(templates.LAYER, ("bfloat16", "bfloat16"))),
        ("'arg_X': '*fp16', 'arg_W': '*fp16'", "", Kernel(templates.LAYER, ("float16", "float16"))),
        ("'arg_A': '*fp32', 'arg_B': '*bf16'", "", Kernel(templates.LAYER, ("float32", "bfloat16"))),
        # one tensor on both sides is one argument
        ("'arg_B': '*bf16'", "idx_q = 1  # batch dimension for BMM", Kernel(templates.PRODUCT, ("bfloat16",))),
    ],
)
def test_a_product_in_triton_has_the_dtypes_of_its_operands(operands: str, body: str, kernel: Kernel) -> None:
    """Its bias and its result have others, and kernels without a template are no products."""
    run = "    triton_poi_fused_relu_1.run(buf0)\n    triton_tem_fused_addmm_0.run(buf0, buf1, stream=stream0)\n"
    assert templates.kernels(POINTWISE + TRITON.format(operands=operands, body=body) + run) == [kernel]


def test_a_call_of_a_product_in_triton_is_counted_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network that compiles itself calls it through `run`, with the stream by name."""
    source = tmp_path / "code.py"
    source.write_text(TRITON.format(operands="'arg_A': '*bf16', 'arg_B': '*bf16'", body=""))
    kernel = SimpleNamespace(run=lambda *values, stream: (*values, stream))
    module = SimpleNamespace(__file__=str(source), triton_tem_fused_addmm_0=kernel)
    monkeypatch.setattr(templates, "modules", lambda: [module])
    with templates.called() as calls:
        assert module.triton_tem_fused_addmm_0.run(1, 2, stream=3) == (1, 2, 3)
    assert calls == [Kernel(templates.LAYER, ("bfloat16", "bfloat16"))]
    assert module.triton_tem_fused_addmm_0 is kernel


def test_each_call_is_a_product() -> None:
    """Equal layers share a function. One that is never called is no layer, and neither is the product of attention."""
    unused = product("float", "float", "cpp_fused_addmm_2")
    code = QUANTISE + product("uint8_t", "int8_t") + unused + call("cpp_fused_addmm_1", "cpp_fused_addmm_1")
    assert templates.kernels(code) == [Kernel(templates.LAYER, ("uint8", "int8"))] * 2
    assert templates.kernels(QUANTISE + call()) == []
    attention = product("float", "float", function="cpp_fused_bmm_1_threaded_mm") + call("cpp_fused_addmm_1")
    assert templates.kernels(attention) == [Kernel(templates.PRODUCT, ("float32", "float32"))]
    assert quantised.layers(templates.kernels(attention)) == []


@pytest.mark.parametrize(
    ("a", "ok", "found"),
    [
        ("uint8_t", True, "2 of 2 layers called in int8"),
        ("float", False, "1 of 2 layers called in int8, but inductor::gemm in float32 x1"),
    ],
)
def test_code_in_int8_may_have_layers_of_both_kinds(a: str, ok: bool, found: str) -> None:  # noqa: FBT001
    """A template counts as an operator of oneDNN does, and one in floating point fails the check."""
    operator = "    buf8 = torch.ops.onednn.qlinear_pointwise.tensor(buf7, x_scale_3, x_zp_3, _frozen_param24)\n"
    check = quantised.code(product(a, "int8_t") + call("cpp_fused_addmm_1") + operator, 2)
    assert (check.ok, check.found) == (ok, found)


def test_a_step_may_have_no_operator_but_only_what_inductor_wrote() -> None:
    """It must still be one call of compiled code, with no operator beside it."""
    region = {"name": f"{compilation.REGION}: 0/0", "ts": 0, "dur": 10}
    beside = {"name": "aten::mm", "ts": 20, "dur": 2, "args": {"Input type": ["float", "float"]}}
    check = compilation.one_region([region], 3)
    assert (check.ok, check.found) == (
        True,
        "1 compiled regions, 0 of 0 operators inside, 3 products that inductor wrote",
    )
    assert not compilation.one_region([region]).ok
    assert not compilation.one_region([region, beside], 3).ok
    assert not compilation.one_region([], 3).ok
