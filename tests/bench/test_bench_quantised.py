"""int8: what the kernels, modules and graphs say of themselves, and that no stack gets away with less."""

import dataclasses
import importlib.util
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from quantiser import Quantiser, failed

from ipexperf.bench import registry
from ipexperf.bench.api import Kernel
from ipexperf.bench.artifacts import artifact
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import NetworkCase
from ipexperf.dtypes import DTYPES
from ipexperf.errors import WorkerError
from ipexperf.proof import accuracy, label, onednn, quantised, templates

HEAD = (
    "onednn_verbose,v1,primitive,exec,cpu,matmul,gemm:jit,undef,src:u8:a:blocked:abcd::f0 wei:s8::blocked:adbc::f0,,,"
)

needs_torch = pytest.mark.torch
needs_ipex = pytest.mark.skipif(importlib.util.find_spec("intel_extension_for_pytorch") is None, reason="needs IPEX")

FUSED = """graph(%x : Tensor):
  %1 : Tensor = aten::quantize_per_tensor(%x, %2, %3, %4) # torch/_tensor.py:1669:0
  %5 : Tensor = ipex::LlgaFusionGroup_0[output_layouts=[1], future_input_uses=[0]](%1)
  %6 : Tensor = ipex::LlgaFusionGroup_1[output_layouts=[0], future_input_uses=[0]](%5)
  return (%6)
with ipex::LlgaFusionGroup_0 = graph(%1 : QUInt8(32, 3, 8, 8, strides=[192, 1, 24, 3], requires_grad=0, device=cpu)):
  %7 : Float(32, 3, 8, 8) = aten::dequantize[qtype="per_tensor", zps=[128], scales=[0.0078]](%1)
  %8 : Float(16, 3, 3, 3) = aten::dequantize[qtype="per_channel", zps=<Tensor>, scales=<Tensor>, axis=0](%9)
  %10 : Float(32, 16, 8, 8) = aten::_convolution(%7, %8, %self.0.bias, %11, %11, %12), scope: __module.0
  %13 : QUInt8(32, 16, 8, 8) = aten::quantize_per_tensor(%10, %14, %15, %16)
  return (%13)
with ipex::LlgaFusionGroup_1 = graph(%5 : QUInt8(32, 16, requires_grad=0, device=cpu)):
  %17 : Float(32, 16) = aten::dequantize[qtype="per_tensor", zps=[0], scales=[0.02]](%5)
  %18 : Float(10, 16) = aten::dequantize[qtype="per_channel", zps=<Tensor>, scales=<Tensor>, axis=0](%19)
  %20 : Float(32, 10) = aten::linear(%17, %18, %self.7.bias), scope: __module.7
  return (%20)
"""


def test_layers_in_a_fusion_that_is_fed_integers_are_quantised() -> None:
    """oneDNN's fusions count as int8 where both operands of their layer come from a dequantisation inside."""
    assert quantised.read_graph(FUSED) == (2, [])
    assert quantised.graph(FUSED, 2).ok


@pytest.mark.parametrize(
    ("old", "new", "rest"),
    [
        # the weights were never quantised
        ("(%7, %8, %self.0.bias", "(%7, %self.0.weight, %self.0.bias", ["aten::_convolution"]),
        # the layer stands outside of any fusion
        ("with ipex::LlgaFusionGroup_1 = graph(", "with prim::TensorExprGroup_1 = graph(", ["aten::linear"]),
        # an operator that IPEX packed for fp32
        ("ipex::LlgaFusionGroup_1[output_layouts=[0], future_input_uses=[0]](", "ipex_prepack::convolution_run(", None),
    ],
)
def test_a_layer_that_stayed_behind_is_named(old: str, new: str, rest: list[str] | None) -> None:
    """A layer with float weights, outside a fusion, or packed for fp32 fails the check, by its operator's name."""
    changed = FUSED.replace(old, new)
    assert changed != FUSED
    check = quantised.graph(changed, 2)
    assert not check.ok
    assert f"but {(rest or ['ipex_prepack::convolution_run'])[0]} x1" in check.found


def test_a_graph_of_quantised_operators_is_int8_and_fewer_than_the_layers_are_not() -> None:
    """Stock's operators are int8 by their names; a layer that is missing from the graph is missed."""
    text = """graph(%x : Tensor):
  %1 : QUInt8(4, 3) = quantized::conv2d_relu(%2, %3, %4, %5)
  %6 : Float(4, 10) = quantized::linear_dynamic(%1, %7, %8)
"""
    assert quantised.read_graph(text) == (2, [])
    assert quantised.graph(text, 2).ok
    assert not quantised.graph(text, 3).ok
    assert not quantised.graph("graph(%x : Tensor):\n  return (%x)\n", 0).ok


WHOLE = [Kernel("convolution", ("uint8", "int8")), Kernel("matmul", ("int8", "int8"))]


@pytest.mark.parametrize(
    ("kernels", "wrong"),
    [
        (WHOLE, set()),
        ([*WHOLE, Kernel("batch_matmul", ("float32", "float32"))], set()),
        ([*WHOLE, Kernel("aten::bmm", ("float32", "float32"))], set()),
        ([Kernel("quantized::conv2d", ("uint8",)), Kernel("quantized::linear_dynamic", ("int8",))], set()),
        ([*WHOLE, Kernel("aten::addmm", ("float32", "float32"))], {"dtype", "quantised_layers"}),
        ([WHOLE[0], Kernel("matmul", ("float32", "float32"))], {"dtype", "quantised_layers"}),
        ([WHOLE[0], Kernel("matmul", ("uint8", "float32"))], {"dtype", "quantised_layers"}),
        ([WHOLE[0]], {"quantised_layers"}),
        # inductor's own template is in neither log
        ([*WHOLE[:1], Kernel(templates.LAYER, ("uint8", "int8"))], set()),
        ([Kernel("aten::conv", ("uint8",)), *WHOLE[:1], Kernel(templates.LAYER, ("uint8", "int8"))], set()),
        ([*WHOLE, Kernel(templates.LAYER, ("float32", "float32"))], {"dtype", "quantised_layers"}),
        ([*WHOLE, Kernel(templates.PRODUCT, ("float32", "float32"))], set()),
        # one layer that both logs tell of is one
        ([WHOLE[0], Kernel("quantized::conv2d", ("uint8",))], {"quantised_layers"}),
        ([], {"dtype", "quantised_layers"}),
    ],
)
def test_every_layer_must_have_run_in_int8(kernels: list[Kernel], wrong: set[str]) -> None:
    """As many int8 kernels as layers, and none in another dtype but a product of two activations."""
    checks = [
        quantised.layers_that_ran(kernels, 2),
        label.dtype_of_kernels(quantised.layers(kernels), "int8"),
    ]
    assert {check.name for check in checks if not check.ok} == wrong


@pytest.mark.parametrize(
    ("shapes", "name"),
    [
        ("16x4x4x16:16x4x16x4:16x4x4x4,0.1", "batch_matmul"),
        ("16x4x64:1x64x32,0.1", "matmul"),
        ("64x192:192x64,0.1", "matmul"),
    ],
)
def test_a_product_of_activations_is_told_from_a_layer(shapes: str, name: str) -> None:
    """In oneDNN's log both are matmuls; only a product of activations has a batch on either side."""
    (kernel,) = label.arithmetic_of(onednn.read(HEAD + shapes))
    assert (kernel.name, kernel.operands) == (name, ("uint8", "int8"))


@needs_torch
def test_layers_are_counted_however_they_are_called() -> None:
    """A fused encoder layer has four linear layers, one of them a function; a layer that is called twice is two."""
    import torch

    nn = torch.nn
    encoder = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    assert quantised.count(encoder, (torch.zeros(2, 3, 16),)) == 4
    twice = nn.Conv2d(3, 3, 1)
    assert quantised.count(nn.Sequential(twice, twice, nn.Flatten(), nn.Linear(12, 2)), (torch.zeros(1, 3, 2, 2),)) == 3
    assert quantised.count(nn.LSTM(4, 4), (torch.zeros(2, 1, 4),)) == 1


@needs_torch
@pytest.mark.parametrize(
    ("agreed", "least", "ok"), [(None, 0.905, True), (0.96, 0.88, True), (0.99, 0.97, False), (1.0, 0.9766, False)]
)
def test_int8_may_have_three_times_stocks_other_answers(agreed: float | None, least: float, ok: bool) -> None:  # noqa: FBT001
    """The agreement that stock's int8 of the same network reached sets the bound, and never below the dtype's own."""
    import torch

    right = torch.eye(256, dtype=torch.float64)
    outputs = right.clone()
    outputs[:13] = outputs[:13].roll(1, 1)  # five other answers among a hundred
    task = registry.tasks.get("classification")
    known = accuracy.Reference((right,), 1.0)
    _, checks = accuracy.fidelity((outputs,), known, (torch.arange(256),), DTYPES["int8"].bounds, task, None, agreed)
    (check,) = [check for check in checks if check.name == "agreement"]
    assert check.ok == ok
    assert check.expected.startswith(f"at least {max(least, 0.905):.4g}")


CASE = NetworkCase("resnet18", "cpu", "int8", "infer_jit", "ipex", 32, 32, data="digits")
FACTS = Facts("python", {"torch": "2.8.0", "intel-extension-for-pytorch": "2.8.0"}, frozenset({"avx2", "sse4_2"}))


def test_the_address_of_an_artifact_is_what_it_is_made_of() -> None:
    """Another case, other weights, another torch or IPEX, other instruction sets: another artifact."""

    def address(case: NetworkCase = CASE, weights: str = "w", facts: Facts = FACTS) -> str:
        return artifact.address(case, weights, facts)

    first = address()
    assert address() == first
    assert address(facts=dataclasses.replace(FACTS, cpu_flags=frozenset({"avx2"}))) == first
    others = [
        address(dataclasses.replace(CASE, batch=64)),
        address(dataclasses.replace(CASE, stack="stock")),
        address(dataclasses.replace(CASE, mode="infer")),
        address(dataclasses.replace(CASE, knobs=(("quantisation", "dynamic"),))),
        address(weights="other"),
        address(facts=dataclasses.replace(FACTS, packages={**FACTS.packages, "torch": "2.8.1"})),
        address(facts=dataclasses.replace(FACTS, cpu_flags=frozenset({"avx2", "avx512_vnni"}))),
    ]
    assert len({first, *others}) == len(others) + 1


@pytest.fixture(scope="module")
def stock(quantisers: Callable[[str], Quantiser]) -> Quantiser:
    """A process without IPEX."""
    return quantisers("stock")


@pytest.fixture(scope="module")
def ipex(quantisers: Callable[[str], Quantiser]) -> Quantiser:
    """A process of its own, for IPEX changes every torch that it is imported beside."""
    return quantisers("ipex")


def whole(quantiser: Quantiser, model: str, mode: str, layers: int) -> None:
    """Every check holds, and all layers are found by their kernels, and in the modules or the graph."""
    case = quantiser.case(model, mode)
    quantiser.make(case)
    checks = quantiser.run(case)
    assert failed(checks) == set()
    assert checks["quantised_layers"]["found"].startswith(f"{layers} of {layers} layers in int8")
    form = checks["quantised_graph" if mode == "infer_jit" else "quantised_modules"]["found"]
    assert form.startswith(f"{layers} of {layers} layers" if mode == "infer_jit" else f"{layers} quantised layers, 0")
    assert {"fidelity", "agreement", "accuracy", "dtype"} <= set(checks)
    assert ("calibration" in checks) == (model == "pixels")
    assert ("jit" in checks) == (mode == "infer_jit")


@pytest.mark.process
@needs_torch
@pytest.mark.parametrize("mode", ["infer", "infer_jit"])
@pytest.mark.parametrize(("model", "layers"), [("pixels", 3), ("rows", 8)])
def test_stock_int8_is_proven_and_accurate(stock: Quantiser, model: str, mode: str, layers: int) -> None:
    """Static and dynamic, eager and scripted: every layer is int8, and the answers are near those in float64."""
    whole(stock, model, mode, layers)


@pytest.mark.process
@needs_ipex
@pytest.mark.parametrize(("model", "mode", "layers"), [("pixels", "infer_jit", 3), ("rows", "infer", 8)])
def test_ipex_int8_is_proven_and_accurate(ipex: Quantiser, model: str, mode: str, layers: int) -> None:
    """IPEX's static int8 is oneDNN's fusions in a script, its dynamic int8 torch's operators, eager as well."""
    whole(ipex, model, mode, layers)


@needs_ipex
def test_a_transformers_layers_can_be_quantised_statically(ipex: Quantiser) -> None:
    """With `quantisation=static` its products of activations are int8 too, and none of them counts as a layer."""
    case = ipex.case("rows", "infer_jit", quantisation="static")
    ipex.make(case)
    checks = ipex.run(case)
    assert checks["quantised_layers"]["found"].startswith("8 of 8 layers in int8")
    assert failed(checks) <= {"fidelity", "agreement", "accuracy"}  # of a network that was barely trained


@needs_torch
@pytest.mark.parametrize(
    ("mode", "stack", "missed"),
    [
        ("infer", "halfway", {"dtype", "quantised_layers", "quantised_modules"}),
        ("infer_jit", "forgetful", {"dtype", "quantised_layers", "quantised_graph"}),
    ],
)
def test_a_stock_network_that_is_not_wholly_int8_is_caught(
    stock: Quantiser, mode: str, stack: str, missed: set[str]
) -> None:
    """A conversion that was skipped, or that left one convolution out, fails the proof in its kernels and its form."""
    case = stock.case("pixels", mode)
    stock.make(case, stack)
    checks = stock.run(case, stack)
    assert failed(checks) == missed
    left = "0 of 3" if stack == "forgetful" else "2 of 3"
    assert checks["quantised_layers"]["found"].startswith(f"{left} layers in int8, but aten::_convolution in float32")


@needs_ipex
def test_an_ipex_network_that_is_not_wholly_int8_is_caught(ipex: Quantiser) -> None:
    """A convolution that stayed in fp32 shows in oneDNN's log, in torch's profiler or in the graph."""
    case = ipex.case("pixels", "infer_jit")
    ipex.make(case, "ipex_halfway")
    checks = ipex.run(case, "ipex_halfway")
    assert failed(checks) == {"dtype", "quantised_layers", "quantised_graph"}
    assert checks["quantised_layers"]["found"].startswith("2 of 3 layers in int8, but ")
    assert "float32" in checks["dtype"]["found"]


@needs_torch
def test_what_an_artifact_was_made_of_lies_beside_it(stock: Quantiser) -> None:
    """The recipe tells the images and how far stock's int8 is off, the observers their scales; the notes say both."""
    case = stock.case("pixels", "infer")
    path = stock.make(case)
    recipe, observers = (json.loads(Path(f"{path}{side}").read_text()) for side in artifact.SIDES)
    assert recipe["recipe"] == artifact.RECIPE
    assert recipe["calibration"]["examples"] == artifact.RECIPE["examples"]
    assert 0 < recipe["rounding"] < 0.065
    assert observers["engine"] == "x86"
    assert all(observers["parameters"][f"{layer}.scale"] > 0 for layer in ("0", "3", "7"))
    checks = stock.run(case)
    assert f"(stock, eager, same dtype: {recipe['rounding']:.1e})" in checks["fidelity"]["expected"]
    assert stock.notes == ["int8: engine x86, activations in 7 bits, calibrated on 256 training examples (seed 0)"]


@needs_torch
def test_an_artifact_that_was_calibrated_on_other_images_is_caught(stock: Quantiser) -> None:
    """What was watched is held against the data: another sum fails the check of the calibration, and nothing else."""
    case = stock.case("pixels", "infer_jit")
    side = Path(f"{stock.make(case)}{artifact.SIDES[0]}")
    recipe = json.loads(side.read_text())
    recipe["calibration"]["sha256"] = "0" * 64
    side.write_text(json.dumps(recipe))
    checks = stock.run(case)
    assert failed(checks) == {"calibration"}
    assert checks["calibration"]["found"] == "other examples, 0 of them held out for accuracy"


@needs_torch
def test_a_network_that_only_ipex_can_quantise_is_bounded_absolutely(stock: Quantiser) -> None:
    """Where stock has no int8 of the network, the recipe says why, and so do the notes of every launch."""
    case = stock.case("pixels", "infer")
    side = Path(f"{stock.make(case)}{artifact.SIDES[0]}")
    side.write_text(
        json.dumps({**json.loads(side.read_text()), "rounding": None, "agreed": None, "no_rounding": "TraceError: no"})
    )
    assert stock.run(case)["fidelity"]["expected"] == "at most 2.3e-01"
    assert stock.notes[-1].endswith("stock has no int8 of this model: TraceError: no")


@needs_torch
def test_int8_without_an_artifact_is_an_error(stock: Quantiser) -> None:
    """A case that is prepared without what it loads ends in one sentence, and nothing runs in another dtype."""
    case = stock.case("pixels", "infer")
    settings = dataclasses.replace(stock.settings_of(case), artifact=None)
    with pytest.raises(WorkerError, match="loads a quantised network, but no file was given"):
        stock.worker.prepare(case.to_json(), asdict(settings))
