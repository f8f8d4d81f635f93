"""int8 of exported graphs: the code that inductor writes, the operators that run, and that no liar gets through."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from quantiser import Quantiser, failed

from ipexperf.bench.api import Kernel
from ipexperf.bench.artifacts import artifact, pt2e
from ipexperf.bench.machine import facts
from ipexperf.bench.machine.facts import Facts
from ipexperf.proof import label, quantised

pytestmark = pytest.mark.long

needs_pt2e = pytest.mark.skipif(
    not ("x86" in facts.pt2e_homes() and facts.gather().compiler),
    reason="needs torch with PT2E, its own or torchao's, and g++",
)

CODE = """
    # %dequantized : call_function[target=torch.ops.aten.convolution.default](args = (%images, %weights))
    buf1 = torch.ops.onednn.qconv_pointwise.tensor(buf0, x_scale, x_zp, _frozen_param20, _frozen_param5)
    buf2 = torch.ops.quantized.max_pool2d.default(buf1, [2, 2], [2, 2], [0, 0], [1, 1], False)
    torch.ops.onednn.qconv2d_pointwise.binary_tensor(buf2, x_scale_1, x_zp_1, _frozen_param22, _frozen_param9)
    extern_kernels.bmm(buf3, buf4, out=buf5)
    buf8 = torch.ops.onednn.qlinear_pointwise.tensor(buf7, x_scale_3, x_zp_3, _frozen_param24, _frozen_param13)
"""


def test_every_layer_of_the_code_is_quantised() -> None:
    """Layers go by the names of oneDNN's operators; pooling and products of activations are none."""
    check = quantised.code(CODE, 3)
    assert (check.ok, check.found) == (True, "3 of 3 layers called in int8")


@pytest.mark.parametrize(
    "call",
    [
        "torch.ops.mkldnn._convolution_pointwise.default",
        "torch.ops.mkl._mkl_linear.default",
        "torch.ops.aten.convolution.default",
        "extern_kernels.addmm",
    ],
)
def test_a_layer_that_is_called_in_floating_point_is_named(call: str) -> None:
    """One of them beside as many quantised ones as there should be, or in the place of one, fails the check."""
    more = quantised.code(f"{CODE}    buf9 = {call}(buf8, _frozen_param1)\n", 3)
    assert not more.ok
    assert "3 of 3 layers called in int8, but " in more.found
    assert not quantised.code(CODE.replace("torch.ops.onednn.qlinear_pointwise.tensor", call), 3).ok


def test_code_with_fewer_layers_than_the_network_is_not_int8() -> None:
    """A layer that is missing, a network without layers and code that nobody wrote prove nothing."""
    assert [quantised.code(*arguments).ok for arguments in ((CODE, 4), ("", 1), ("", 0))] == [False, False, False]


def event(name: str, *kinds: str) -> dict[str, Any]:
    """As torch's profiler writes one of inductor's quantised operators."""
    sizes = [[8, 16, 6, 6], [], [], [16, 16, 3, 3]]
    operands = {"Input type": list(kinds), "Input Dims": sizes, "Input Strides": [[576, 1, 96, 16]]}
    return {"name": name, "args": operands}


def test_quantised_operators_tell_images_weights_and_layout() -> None:
    """The scale and the zero point between them are no operands, and packing weights is no layer."""
    kernels = label.kernels(
        [
            event("onednn::qconv2d_pointwise", "unsigned char", "Scalar", "Scalar", "signed char", "float"),
            event("onednn::qlinear_pointwise", "unsigned char", "double", "long int", "signed char", "float"),
            event("onednn::qconv_pointwise", "float", "Scalar", "Scalar", "signed char", "float"),
            event("onednn::qconv_prepack", "signed char", "float", "Scalar", "Scalar"),
        ]
    )
    assert kernels == [
        Kernel("onednn::qconv2d_pointwise", ("uint8", "int8"), "channels_last"),
        Kernel("onednn::qlinear_pointwise", ("uint8", "int8")),
        Kernel("onednn::qconv_pointwise", ("float32", "int8"), "channels_last"),
    ]
    assert not quantised.layers_that_ran(kernels, 2).ok


@pytest.mark.parametrize(
    ("packages", "home"),
    [
        (["torch/ao/quantization", "torchao/quantization/pt2e"], "torch.ao.quantization"),
        (["torch", "torchao/quantization/pt2e"], "torchao.quantization.pt2e"),
        (["torch", "torchao"], ""),
    ],
)
def test_torchs_own_tools_come_before_torchaos(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, packages: list[str], home: str
) -> None:
    """Their files are looked for, in packages that were made for this test; the facts carry the answer as JSON."""
    for package in packages:
        place = tmp_path / package
        (place / "quantizer").mkdir(parents=True)
        if "quantization" in package:
            for part in (facts.PT2E_STEPS, f"quantizer.x86{facts.PT2E_QUANTIZER}"):
                place.joinpath(*part.split(".")).with_suffix(".py").touch()
    for name in {package.split("/")[0] for package in packages}:
        (tmp_path / name / "__init__.py").touch()
    for name in ("torch", "torchao"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert facts.pt2e_homes() == ({"x86": home} if home else {})
    gathered = Facts("python", {}, pt2e=facts.gather().pt2e)
    assert Facts.from_json(gathered.to_json()).pt2e == facts.pt2e_homes()


@pytest.fixture(scope="module")
def stock(quantisers: Callable[[str], Quantiser]) -> Quantiser:
    """A process without IPEX."""
    return quantisers("stock")


@pytest.fixture(scope="module")
def made(stock: Quantiser) -> Path:
    """What is made of the small network, once: each strict export counts against dynamo's limit for a process."""
    return stock.make(stock.case("pixels", "infer_compile"))


def whole(checks: dict[str, dict[str, Any]], layers: int) -> None:
    """Every check holds, and all layers are found in the logs and in the code."""
    assert failed(checks) == set()
    assert checks["quantised_layers"]["found"].startswith(f"{layers} of {layers} layers in int8")
    assert checks["quantised_code"]["found"] == f"{layers} of {layers} layers called in int8"
    promised = {"dtype", "graphs", "inductor", "compiled_step", "freezing", "fidelity", "agreement", "accuracy"}
    assert promised <= set(checks)


@pytest.mark.process
@needs_pt2e
@pytest.mark.usefixtures("made")
def test_compiled_int8_is_proven_and_accurate(stock: Quantiser) -> None:
    """What was saved is loaded and compiled in one graph, and each of its layers runs in int8."""
    checks = stock.run(stock.case("pixels", "infer_compile"))
    whole(checks, 3)
    assert "calibration" in checks


@needs_pt2e
def test_dynamic_quantisation_is_compiled_too(stock: Quantiser) -> None:
    """All linear layers of a transformer's are int8, and nothing was calibrated."""
    case = stock.case("rows", "infer_compile")
    stock.make(case)
    checks = stock.run(case)
    whole(checks, 8)
    assert "calibration" not in checks


@needs_pt2e
@pytest.mark.usefixtures("made")
def test_a_layer_that_inductor_wrote_itself_is_proven_by_its_code(stock: Quantiser) -> None:
    """Neither a trace nor oneDNN's log names the linear layer, which is one of three."""
    checks = stock.run(stock.case("pixels", "infer_compile"), "own_products")
    whole(checks, 3)
    assert checks["compiled_step"]["found"].endswith("2 of 2 operators inside, 1 products that inductor wrote")


@needs_pt2e
@pytest.mark.skipif("xpu" not in facts.pt2e_homes(), reason="needs torch 2.7 or later, or a torchao with the quantizer")
def test_a_program_for_intel_gpus_has_every_layer_quantised(stock: Quantiser) -> None:
    """Its activations are signed, which the kernels of a CPU refuse: here it is made, and not run."""
    case = stock.case("pixels", "infer_compile", quantisation="static", channels_last="on")
    path = stock.make(case, "for_xpu")
    recipe, observers = (json.loads(Path(f"{path}{side}").read_text()) for side in artifact.SIDES)
    assert recipe["kernels"].endswith("activations in 8 bits, for xpu")
    observed = observers["observed"].values()
    assert sum("dequantize_per_channel" in node["operator"] for node in observed) == 3  # the weights of each layer
    images = [node["parameters"] for node in observed if "quantize_per_tensor" in node["operator"]]
    assert {tuple(parameters[2:4]) for parameters in images} == {(-128, 127)}


@pytest.mark.torch
@needs_pt2e
def test_a_program_is_moved_to_its_device_when_it_is_loaded(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was made on the CPU; the device here is torch's `meta`, which every machine has."""
    import torch

    tools = pt2e.tools("cpu")
    monkeypatch.setattr(pt2e, "tools", lambda _: tools)
    program = pt2e.load(str(made), "meta")
    tensors = [*program.parameters(), *program.buffers()]
    assert tensors
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert program(torch.zeros(16, 3, 8, 8, device="meta")).shape == (16, 10)


@needs_pt2e
def test_a_program_that_is_not_wholly_int8_is_caught(stock: Quantiser) -> None:
    """One layer that was left out shows in kernels and code."""
    case = stock.case("pixels", "infer_compile", quantisation="static")  # another file than the honest one
    stock.make(case, "skips")
    checks = stock.run(case, "skips")
    assert failed(checks) == {"dtype", "quantised_layers", "quantised_code"}
    assert checks["quantised_layers"]["found"].startswith("2 of 3 layers in int8, but ")
    assert checks["quantised_code"]["found"].startswith("2 of 3 layers called in int8, but ")


@needs_pt2e
@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("stack", "missed"),
    [("in_name_only", {"dtype", "quantised_layers", "quantised_code", "freezing"}), ("breaks", {"graphs"})],
)
def test_a_program_that_is_not_compiled_as_it_should_be_is_caught(
    stock: Quantiser, stack: str, missed: set[str]
) -> None:
    """int8 around layers in fp32, which is what a program is before it is compiled frozen, and a broken graph."""
    checks = stock.run(stock.case("pixels", "infer_compile"), stack)
    assert failed(checks) >= missed
    assert ("quantised_code" in failed(checks)) == (stack == "in_name_only")
