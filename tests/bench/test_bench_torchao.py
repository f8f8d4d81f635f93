"""torchao's packed weights are proven by the kernels that ran and the bytes held; layers that it left are caught."""

import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.cell import Cell
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.modes import _generation
from ipexperf.errors import WorkerError

torch = pytest.importorskip("torch")

from bench_cases import TOKENS, failed, generation, named

from ipexperf.bench.artifacts import rounding
from ipexperf.bench.stacks import _torchao_weights
from ipexperf.zoo.models import _decoder

SIZE, LAYERS = 8, 15
SHAPE = _decoder.Shape(
    layers=2, width=64, heads=4, key_heads=2, inner=128, vocabulary=TOKENS, positions=SIZE, theta=500.0
)
"""With as many inputs in each of its 15 linear layers as a group has weights."""
FACTS = Facts("python", {"torch": "2.8.0", "torchao": "0.13.0"}, compiler="g++")
needs_torchao = pytest.mark.skipif(importlib.util.find_spec("torchao") is None, reason="needs torchao")


class Packed(torch.Tensor):  # type: ignore[misc] # torch has no types here
    """A weight as torchao holds it: a tensor of another class around the packed numbers and their scales."""

    @staticmethod
    def __new__(cls, weight: Any, group: int, multiply: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, weight.shape, dtype=weight.dtype)

    def __init__(self, weight: Any, group: int, multiply: Any) -> None:
        self.group, self.multiply = group, multiply
        whole, scales, middles = rounding.parts(weight.detach(), "int4", group)
        self.numbers = torch.ops.aten._convert_weight_to_int4pack_for_cpu(whole.flatten(1).to(torch.int32), 1)
        self.scales = torch.stack((scales, middles), -1).squeeze(2).transpose(0, 1).contiguous().to(weight.dtype)

    def __tensor_flatten__(self) -> tuple[list[str], int]:
        return ["numbers", "scales"], self.group

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is not torch.nn.functional.linear:
            return super().__torch_function__(function, types, args, kwargs)
        inputs, weight = args[:2]
        outputs = weight.multiply(inputs.flatten(0, -2), weight.numbers, weight.group, weight.scales)
        return outputs.unflatten(0, inputs.shape[:-1])

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.ops.aten.detach.default:
            return args[0]
        raise NotImplementedError(function)


def torchao(pack: Callable[[Any], bool]) -> dict[str, ModuleType]:
    """A package that has torchao's names for CPUs, and packs the linear layers of which `pack` says so."""
    modules = {name: ModuleType(name) for name in ("torchao", "torchao.quantization", "torchao.dtypes")}
    package, quantization, dtypes = (modules[name] for name in modules)

    def quantize(network: Any, configuration: tuple[int, Any]) -> None:
        for _, name, layer in [*rounding.linear(network)]:
            if pack(name):
                layer.weight = torch.nn.Parameter(Packed(layer.weight, *configuration), requires_grad=False)

    def weight_only(group_size: int, **_: Any) -> tuple[int, Any]:
        return group_size, torch.ops.aten._weight_int4pack_mm_for_cpu

    def dynamic(group_size: int, **_: Any) -> tuple[int, Any]:
        return group_size, torch.ops.torchao.da8w4_linear_cpu

    names = (quantize, weight_only, dynamic)
    quantization.__dict__.update(zip(("quantize_", *_torchao_weights.CONFIGURATIONS.values()), names, strict=True))
    dtypes.__dict__.update(dict.fromkeys(_torchao_weights.LAYOUTS.values(), object))
    package.__dict__.update(__version__="0.13.0", quantization=quantization, dtypes=dtypes)
    return modules


def use(monkeypatch: pytest.MonkeyPatch, pack: Callable[[Any], bool] = lambda _: True) -> None:
    for name, module in torchao(pack).items():
        monkeypatch.setitem(sys.modules, name, module)


def session(mode: str, dtype: str, **knobs: str) -> Any:
    """A session of a small decoder that torchao quantises."""
    return generation(SHAPE, SIZE, mode, dtype, "torchao", **knobs)


def proven(opened: Any, group: int) -> None:
    opened.step()
    checks = opened.proof()
    assert failed(checks) == set()
    assert named(checks, "packed_kernels").found.startswith(f"{LAYERS} of {LAYERS} layers in aten::_weight_int4")
    assert named(checks, "packed_weights").found.endswith(f"in {LAYERS} layers, 4 bits each")
    assert "MiB" in named(checks, "weights_held").found  # of the embedding and the norms
    assert failed(opened.accuracy()[1]) == set()
    assert opened.network.head.weight.shape == (SHAPE.vocabulary, SHAPE.width)
    assert isinstance(opened.network.tokens.weight, torch.nn.Parameter)


@pytest.mark.parametrize(("mode", "dtype", "group"), [("prefill", "fp32", "64"), ("decode", "bf16", "32")])
def test_packed_weights_are_proven(monkeypatch: pytest.MonkeyPatch, mode: str, dtype: str, group: str) -> None:
    """The kernels of all layers are seen in a step, and the numbers inside a weight take its bits."""
    use(monkeypatch)
    proven(session(mode, dtype, weights="int4", weight_group=group), int(group))


@needs_torchao
@pytest.mark.filterwarnings("ignore")  # what torchao warns of while it is imported is not ours
@pytest.mark.parametrize(("mode", "group"), [("prefill", "32"), ("decode", "64")])
def test_packed_weights_of_torchao_itself_are_proven(mode: str, group: str) -> None:
    proven(session(mode, "bf16", weights="int4", weight_group=group), int(group))


def test_weights_that_were_never_packed_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """One layer that torchao passed over is seen in the kernels, and a network that it passed over in its bytes too."""
    use(monkeypatch, lambda name: name != "up")
    checks = session("decode", "bf16", weights="int4").proof()
    assert not named(checks, "packed_kernels").ok
    assert named(checks, "packed_kernels").found.startswith("13 of 15 layers")
    use(monkeypatch, lambda _: False)
    checks = session("decode", "bf16", weights="int4").proof()
    assert [named(checks, name).ok for name in ("packed_weights", "packed_kernels")] == [False, False]
    assert named(checks, "packed_weights").found.endswith("16 bits each")


def test_int8_activations_need_a_torchao_with_kernels_for_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its packages on PyPI have none. One sentence says which build has."""
    use(monkeypatch)
    monkeypatch.setattr(_torchao_weights, "has_kernel", lambda _: False)
    with pytest.raises(WorkerError, match="was built without its own kernels") as error:
        session("decode", "bf16", weights="da8w4")
    assert str(error.value).endswith("USE_CPU_KERNELS=1")


def test_int8_activations_are_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a kernel that rounds each token to 255 steps, as torchao's does: it ran in every layer."""
    use(monkeypatch)
    if hasattr(torch.ops.torchao, "da8w4_linear_cpu"):
        pytest.skip("torchao itself has the operator in this process")

    def multiply(rows: Any, numbers: Any, group: int, scales: Any) -> Any:
        step = (rows.amax(1, keepdim=True) - rows.amin(1, keepdim=True)).clamp(min=1e-6) / 255
        rounded = ((rows / step).round() * step).to(rows.dtype)
        return torch.ops.aten._weight_int4pack_mm_for_cpu(rounded, numbers, group, scales)

    with torch.library._scoped_library("torchao", "FRAGMENT") as library:
        library.define("da8w4_linear_cpu(Tensor rows, Tensor numbers, int group, Tensor scales) -> Tensor")
        library.impl("da8w4_linear_cpu", multiply, "CPU")
        opened = session("decode", "fp32", weights="da8w4")
        checks = opened.proof()
        assert failed(checks) == set()
        assert named(checks, "packed_kernels").found.startswith("15 of 15 layers in torchao::da8w4_linear_cpu")
        assert named(checks, "packed_weights").found.endswith("4 bits each")
        assert failed(opened.accuracy()[1]) == set()


def test_a_torchao_without_layouts_for_cpus_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two releases they had other names."""
    use(monkeypatch)
    monkeypatch.delattr(sys.modules["torchao.dtypes"], _torchao_weights.LAYOUTS["int4"])
    with pytest.raises(WorkerError, match="Int4CPULayout") as error:
        session("decode", "bf16", weights="int4")
    assert error.value.outcome == "version_mismatch"


def test_a_torchao_that_cannot_be_imported_is_a_mismatch(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is made for another torch fails while it is imported."""
    monkeypatch.setitem(sys.modules, "torchao.quantization", None)
    with pytest.raises(WorkerError, match="torchao cannot be imported beside torch") as error:
        registry.stacks.get("torchao").start()
    assert error.value.outcome == "version_mismatch"


INT4, INT8 = (("weights", "int4"),), (("weights", "int8"),)


@pytest.mark.parametrize(
    ("mode", "dtype", "knobs", "packages", "reason"),
    [
        ("decode", "bf16", INT4, {}, None),
        ("decode", "bf16", (), {}, "torchao is here to quantise weights: choose how with --perf-knobs weights="),
        ("infer", "fp32", (), {}, "torchao is here to quantise weights"),
        (
            "decode",
            "bf16",
            INT4,
            {"torchao": None},
            "torchao not installed in python: pip install 'ipexperf[torchao]' there",
        ),
        ("decode", "bf16", INT4, {"torchao": "0.9.0"}, "torchao 0.9.0 is too old: install torchao 0.13 or later"),
        ("decode", "bf16", INT8, {}, "torchao has no kernel for weights=int8 outside torch.compile"),
        ("decode_compile", "fp32", INT8, {}, "inductor finds torchao's int8 weights in bf16 only"),
        ("decode_compile", "bf16", INT8, {}, None),
    ],
)
def test_where_torchao_can_be_measured(
    mode: str, dtype: str, knobs: tuple[tuple[str, str], ...], packages: dict[str, str | None], reason: str | None
) -> None:
    cell = Cell("llama_135m", "cpu", dtype, mode, "torchao", knobs)
    facts = Facts("python", {**FACTS.packages, **packages}, compiler="g++")
    answer = registry.stacks.get("torchao").why_not(cell, facts)
    assert answer == reason or (reason is not None and str(answer).startswith(reason))


@pytest.mark.parametrize(("stack", "able"), [("torchao", True), ("stock", False), ("ipex", False)])
def test_int8_activations_are_torchaos(stack: str, *, able: bool) -> None:
    cell = Cell("llama_135m", "cpu", "bf16", "decode", stack, (("weights", "da8w4"),))
    answer = _generation.KNOBS[0].why_not(cell, "da8w4", FACTS)
    assert (answer is None) is able
    assert able or answer == f"{stack} packs no weights=da8w4: choose --stack torchao"
