"""Operators of decoders alone: they are the decoder's own, come from memory, and are proven like any other case."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.api import Cell
from ipexperf.bench.machine.facts import Facts
from ipexperf.case import Case
from ipexperf.dtypes import DTYPES
from ipexperf.zoo.datasets import random_data
from ipexperf.zoo.models import decoders, operators

torch = pytest.importorskip("torch")

from bench_cases import named, workbench

from ipexperf.bench.modes import _generation, _operator
from ipexperf.zoo.models import _decoder, _operators

if TYPE_CHECKING:
    from ipexperf.bench.modes._operator import OperatorSession

SIZE = 8
SHAPE = _decoder.Shape(layers=3, width=64, heads=4, key_heads=2, inner=128, vocabulary=256, positions=SIZE, theta=500.0)
WIDER = dataclasses.replace(SHAPE, width=128)
"""Wide enough for oneDNN: torch does without it up to 4,096 multiplications."""
WHOLE = dataclasses.replace(SHAPE, inner=4096)
"""With gates large enough to take turns."""


def session(name: str, mode: str, dtype: str = "fp32", shape: Any = SHAPE, **knobs: str) -> OperatorSession:
    """A session of an operator of a small decoder, on stock PyTorch."""
    model = dataclasses.replace(
        registry.models.get(f"llama_1b.{name}"),
        build=lambda: operators._operators(shape, operators.PATHS[name]),
        size=SIZE,
    )
    case = Case(model.name, "cpu", dtype, mode, "stock", 1, SIZE, 1, "activations", tuple(sorted(knobs.items())))
    opened: Any = workbench(model, case)
    return opened.mode.open(opened)


@pytest.fixture(autouse=True)
def small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches of a mebibyte: a few copies are enough."""
    monkeypatch.setattr(_operator, "last_level", lambda: 2**20)


@pytest.mark.parametrize(("mode", "dtype"), [("prefill", "fp32"), ("decode", "bf16")])
@pytest.mark.parametrize("name", operators.PATHS)
def test_every_operator_is_proven_and_true_to_float64(name: str, mode: str, dtype: str) -> None:
    opened = session(name, mode, dtype, WIDER)
    opened.step()
    checks = opened.proof()
    assert [str(check) for check in checks if not check.ok] == []
    assert {"from_memory", "dtype"} <= {check.name for check in checks}
    metrics, checks = opened.accuracy()
    assert [str(check) for check in checks if not check.ok] == []
    assert "accuracy" not in metrics
    assert metrics["agreement"] == 1


@pytest.mark.parametrize("kind", ["int8", "int4"])
def test_linear_operators_run_with_packed_weights(kind: str) -> None:
    opened = session("gate_up", "decode", weights=kind)
    checks = [*opened.proof(), *opened.accuracy()[1]]
    assert [str(check) for check in checks if not check.ok] == []
    assert named(checks, "packed_kernels").found.startswith("6 of 6 layers in aten::_weight_int")


def test_the_operators_of_a_decoder_are_all_of_its_weights() -> None:
    """No layer of the decoder is in no operator, and none in two; the embedding is looked up, not multiplied."""
    with torch.device("meta"):
        decoder = _decoder.Decoder(SHAPE)
        whole = sum(value.numel() for value in decoder.parameters()) - decoder.tokens.weight.numel()
    parts = [_operators.Operators(SHAPE, paths) for paths in operators.PATHS.values() if paths]
    found = sum(value.numel() for part in parts for value in part.parameters())
    assert found == whole + decoder.head.weight.numel()


@pytest.mark.parametrize("whole", decoders.SHAPES)
def test_a_step_runs_the_operator_of_every_layer(whole: str) -> None:
    """As a step of the decoder does, so that times are parts of its time."""
    shape = decoders.SHAPES[whole]
    small = dataclasses.replace(shape, width=64, heads=2, key_heads=1, inner=64, vocabulary=64)
    expected = {"gate_up": 2 * shape.layers, "key_value": 2 * shape.layers, "norm": 2 * shape.layers + 1, "head": 1}
    for name, paths in operators.PATHS.items():
        network = operators._operators(small, paths)
        outputs = network(torch.randn(1, 1, random_data.WIDTH))
        assert len(outputs) == expected.get(name, shape.layers), name


def test_attention_is_that_of_the_decoder() -> None:
    """With the decoder's own projections and no rotation, its activations give the decoder's attention."""
    torch.manual_seed(0)
    layer = _decoder.Attention(SHAPE).eval()
    hidden = torch.randn(1, SIZE, SHAPE.width)
    still = (torch.ones(SIZE, SHAPE.head), torch.zeros(SIZE, SHAPE.head))
    with torch.no_grad():
        given = torch.cat([layer.query(hidden), layer.key(hidden), layer.value(hidden)], -1)
        outputs = _operators.Attentions(SHAPE)(given)
        assert torch.allclose(layer.out(outputs[0]), layer(hidden, still), atol=1e-6)


def test_ipex_cannot_trace_operators_into_something_else() -> None:
    """Seen: `ipex.optimize` traced them with torch.fx, and their memory was gone. Decoders cannot be traced either."""
    for network in (_operators.Operators(SHAPE, ("down",)), _operators.Attentions(SHAPE)):
        with pytest.raises(torch.fx.proxy.TraceError):
            torch.fx.symbolic_trace(network)


def test_copies_of_the_weights_take_turns() -> None:
    """Together they are four times as large as the caches, and each step runs the next one."""
    opened = session("gate_up", "decode", shape=WHOLE)
    size = 3 * 2 * 64 * 4096 * 4
    assert opened.bytes == size
    assert len(opened.others) == 0, "one copy is enough"
    opened = session("gate_up", "decode", shape=WHOLE, weights="int4")
    assert opened.bytes == size // 8 < 2**20
    small = session("gate_up", "decode", shape=dataclasses.replace(WHOLE, inner=1024))
    assert small.bytes == size // 4
    networks = [small.network, *(network for network, _ in small.others)]
    assert len(networks) == 3
    assert _operator.used(networks, small.step) == [1, 1, 1]
    assert small.network is networks[0]


def test_weights_that_stay_in_the_caches_are_caught() -> None:
    """One copy for every step, or several of which one runs."""
    alone, several = [object()], [object() for _ in range(4)]
    assert not _operator.from_memory(alone, 2**25, 2**25, [1]).ok
    assert not _operator.from_memory([alone[0]] * 4, 2**25, 2**25, [1] * 4).ok
    assert not _operator.from_memory(several, 2**25, 2**25, [4, 0, 0, 0]).ok
    assert _operator.from_memory(several, 2**25, 2**25, [1] * 4).ok
    assert _operator.from_memory(alone, 2**10, 2**25, [1]).ok


@pytest.mark.parametrize(("name", "flops"), [("down", 2 * 3 * 64 * 128), ("norm", 0)])
def test_its_work_is_counted(name: str, flops: int) -> None:
    """A norm multiplies no matrices, but reads and writes its activations."""
    work = session(name, "decode").counted()
    assert work.flops == flops
    elements = 3 * (64 * 128 + 64 + 128) if name == "down" else (2 * 3 + 1) * 3 * 64
    assert work.elements == elements


def test_packed_weights_count_with_the_bits_that_they_have() -> None:
    """Bytes are elements times the width of the dtype: 4 bits are an eighth of fp32."""
    plain, packed = session("down", "decode").counted(), session("down", "decode", weights="int4").counted()
    weights = 3 * 64 * 128
    assert plain.elements - packed.elements == weights - weights // 8
    assert plain.flops == packed.flops
    assert DTYPES["fp32"].width * packed.elements == 3 * (64 * 128 // 2 + 4 * (64 + 128))


@pytest.mark.parametrize(("mode", "fits"), [("prefill", True), ("decode", True), ("infer", False), ("train", False)])
def test_operators_are_for_modes_that_read_tokens(mode: str, *, fits: bool) -> None:
    model, facts = registry.models.get("llama_1b.down"), Facts("python", {"torch": "2.8.0"})
    cell = Cell("llama_1b.down", "cpu", "fp32", mode, "stock")
    reason = model.why_not(cell, registry.modes.get(mode), facts)
    refused = f"it is an operator of llama_1b, for modes that read its tokens: {mode} does not"
    assert reason == (None if fits else refused)


def test_what_has_no_linear_layer_cannot_be_packed() -> None:
    cell = Cell("llama_1b.norm", "cpu", "fp32", "decode", "stock", (("weights", "int8"),))
    reason = _generation.Weights().why_not(cell, "int8", Facts("python", {}))
    assert reason == "weights=int8 packs linear layers, and llama_1b.norm has none"
