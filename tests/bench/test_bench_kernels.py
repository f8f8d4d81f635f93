"""What oneDNN's log and torch's profiler tell of the arithmetic that ran: operands and layouts."""

from typing import Any

import pytest

from ipexperf.bench.api import Kernel
from ipexperf.proof import label, onednn

HEAD = "onednn_verbose,v1,primitive,exec,cpu,"
CONVOLUTION = (
    HEAD
    + "convolution,brg_conv_fwd:avx2,forward_inference,src:{src}::blocked:{tag}::f0 wei:{wei}:ap:blocked:Acdb24a::f0 "
    "bia:f32:a:blocked:a::f0 dst:f32::blocked:acdb::f0,attr-scratchpad:user attr-post-ops:eltwise_relu,"
    "alg:convolution_direct,mb8_ic{channels}oc64_ih{height}oh16kh7sh2dh0ph3_iw{height}ow16kw7sw2dw0pw3,28.5"
)


def line(src: str = "f32", wei: str = "f32", tag: str = "acdb", channels: int = 3, height: int = 32) -> str:
    return CONVOLUTION.format(src=src, wei=wei, tag=tag, channels=channels, height=height)


def read(log: str) -> list[Kernel]:
    return label.arithmetic_of(onednn.read(log))


def test_a_convolution_in_the_log_tells_its_operands_and_its_layout() -> None:
    """Both operands' dtypes and the images' layout are read; reorders and poolings are no arithmetic."""
    log = "\n".join(
        (
            "onednn_verbose,v1,info,cpu,isa:Intel AVX2",
            HEAD + "reorder,jit:uni,undef,src:f32::blocked:acdb::f0 dst:f32:p:blocked:Acdb24a::f0,,,64x3x7x7,14.9",
            line(),
            HEAD + "pooling,jit:avx2,forward_inference,src:f32::blocked:acdb::f0 dst:f32:a:blocked:acdb::f0,,,mb8,2.5",
        )
    )
    assert read(log) == [Kernel("convolution", ("float32", "float32"), "channels_last", "brg_conv_fwd:avx2")]


@pytest.mark.parametrize(("src", "wei", "dtype"), [("bf16", "bf16", "bfloat16"), ("f32", "bf16", "float32 x bfloat16")])
def test_an_operand_of_another_dtype_is_told(src: str, wei: str, dtype: str) -> None:
    """Weights that stayed behind in another dtype show, although the images are right."""
    (kernel,) = read(line(src=src, wei=wei))
    assert kernel.dtype == dtype
    check = label.dtype_of_kernels([kernel], "bf16")
    assert check.ok == (dtype == "bfloat16")


def test_a_matrix_product_and_a_gradient_have_operands_too() -> None:
    """Matrix products and the backward pass are arithmetic, and have no layout of images."""
    log = "\n".join(
        (
            HEAD
            + "matmul,brg:avx512,undef,src_bf16::blocked:ab::f0 wei_bf16::blocked:BA16a64b2a::f0 dst_bf16::a,,,4x8,1",
            HEAD + "matmul,brg:avx512,undef,src:bf16::blocked:ab::f0 wei:bf16::blocked:BA16a::f0 dst:bf16::a,,,4x8,1",
            HEAD + "convolution,jit:avx2,backward_data,diff_src:f32:a:blocked:acdb::f0 wei:f32::blocked:Acdb::f0 "
            "diff_dst:f32::blocked:acdb::f0,,alg:convolution_direct,mb8_ic64oc64_ih8oh8kh3_iw8ow8kw3,2.1",
        )
    )
    found = read(log)
    assert [(kernel.name, kernel.layout) for kernel in found] == [("matmul", ""), ("matmul", ""), ("convolution", "")]
    assert found[0].operands == found[1].operands == ("bfloat16", "bfloat16")
    assert found[2].operands == ("float32", "float32")


@pytest.mark.parametrize(
    ("change", "layout"),
    [
        ({}, "channels_last"),
        ({"tag": "abcd"}, "contiguous"),
        ({"tag": "aBcd16b"}, ""),
        ({"tag": "abcd", "channels": 1}, ""),
        ({"tag": "abcd", "height": 1}, ""),
    ],
)
def test_a_layout_is_told_only_where_it_can_be_told(change: dict[str, Any], layout: str) -> None:
    """One channel or one pixel lies the same way in both layouts, and a blocked layout is the library's own."""
    (kernel,) = read(line(**change))
    assert kernel.layout == layout


def test_one_convolution_in_the_other_layout_is_caught() -> None:
    """A model that turns its images round inside has the right input and the wrong convolutions."""
    kernels = [Kernel("convolution", ("float32", "float32"), layout) for layout in ("channels_last", "contiguous", "")]
    (check,) = label.layout_of_kernels(kernels, channels_last=True)
    assert not check.ok
    assert check.found == "channels_last x1, contiguous x1"
    assert label.layout_of_kernels(kernels[:1], channels_last=True)[0].ok
    assert label.layout_of_kernels(kernels, channels_last=False) == []


@pytest.mark.torch
def test_the_profiler_sees_a_model_that_turns_its_images_round() -> None:
    """The layout is read from the convolution's own input, not from what was given to the model."""
    import torch

    class Liar(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)

        def forward(self, images: Any) -> Any:
            return self.inner(images.contiguous())

    liar, images = Liar(), torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    assert label.layout(images, channels_last=True).ok
    (caught,) = label.layout_of_kernels(label.profiled(lambda: liar(images)), channels_last=True)
    assert (caught.ok, caught.found) == (False, "contiguous x1")
    assert label.layout_of_kernels(label.profiled(lambda: liar.inner(images)), channels_last=True)[0].ok


@pytest.mark.parametrize("name", [*label.SGEMM, label.ATTENTION])
def test_what_onednn_does_not_log_tells_its_operands_to_the_profiler(name: str) -> None:
    """IPEX's packed layer and fused attention are arithmetic: one in another dtype than the case's shows."""
    events = [
        {"name": name, "args": {"Input type": [kind, kind, "float", "Scalar"], "Input Dims": [[2, 4], [4, 4], [4], []]}}
        for kind in ("float", "c10::BFloat16")
    ]
    assert [kernel.dtype for kernel in label.kernels(events)] == ["float32", "bfloat16"]


@pytest.mark.parametrize(
    ("kinds", "dtype"),
    [
        (["c10::quint8", "", "Scalar", "Scalar"], "uint8"),
        (["float", "c10::quint8", "", "Scalar", "Scalar"], "uint8"),
        (["float", "float", "c10::quint8", "", "Scalar", "Scalar"], "uint8"),
        (["c10::quint8", "float", "", "Scalar", "Scalar"], "float32"),
    ],
)
def test_an_int8_layer_takes_what_stands_before_its_packed_weights(kinds: list[str], dtype: str) -> None:
    """In a graph the answers of heads that ran before may stand in front of that; a float that it takes shows."""
    events = [{"name": "quantized::linear", "args": {"Input type": kinds, "Input Dims": [[2, 4]] * len(kinds)}}]
    assert [kernel.dtype for kernel in label.kernels(events)] == [dtype]


@pytest.mark.parametrize("waiting", [[], ["float"], ["float", "c10::BFloat16"]])
def test_a_convolution_in_a_graph_takes_nothing_that_waits_for_a_later_operator(waiting: list[str]) -> None:
    """As what the top of Faster R-CNN's pyramid gives waits to be added: it stands in front, and is no operand."""
    images, others = ["c10::BFloat16"] * 2, [""] * 11
    strides = [[1]] * len(waiting) + [[1024, 1, 128, 16], [64, 1, 1, 1]] + [[]] * 11
    sizes = [[1]] * len(waiting) + [[4, 64, 16, 16], [128, 64, 1, 1]] + [[]] * 11
    args = {"Input type": [*waiting, *images, *others], "Input Dims": sizes, "Input Strides": strides}
    [kernel] = label.kernels([{"name": "aten::_convolution", "args": args}])
    assert (kernel.dtype, kernel.layout) == ("bfloat16", "channels_last")
