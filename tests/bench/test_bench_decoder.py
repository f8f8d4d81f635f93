"""The decoders of the Llama and Qwen families compute what `transformers` computes, and are held as they are served."""

import dataclasses
from typing import Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.artifacts import rounding
from ipexperf.bench.cell import Cell
from ipexperf.bench.machine.facts import Facts
from ipexperf.proof import fingerprint

torch = pytest.importorskip("torch")

from bench_cases import decoder, failed, generation, named

from ipexperf.bench.modes import _generation
from ipexperf.bench.stacks import _stock_weights
from ipexperf.errors import WorkerError
from ipexperf.zoo.models import _decoder

SIZE, BATCH = 8, 2
LLAMA = _decoder.Shape(
    layers=2, width=32, heads=4, key_heads=2, inner=48, vocabulary=32_000, positions=SIZE, theta=500.0
)
QWEN = dataclasses.replace(LLAMA, key_heads=1, theta=1e4, epsilon=1e-6, bias=True, tied=False)
"""With heads large enough for oneDNN: torch multiplies small matrices without it."""


AVX512 = {"avx2", "avx512bw", "avx512vl", "avx512dq"}


@pytest.mark.parametrize("shape", [LLAMA, QWEN])
def test_it_computes_what_transformers_computes(shape: _decoder.Shape) -> None:
    """The same weights give the same outputs, for whole texts and token by token."""
    pytest.importorskip("transformers")
    import of_transformers

    ours = decoder(shape)
    theirs = of_transformers.network(ours)
    assert {of_transformers.renamed(name) for name in theirs.state_dict()} == set(ours.state_dict())
    tokens = torch.randint(shape.vocabulary, (BATCH, SIZE))
    with torch.no_grad():
        expected = theirs(tokens).logits
        whole, memory = ours(tokens), ours.memory()
        parts = [ours(tokens[:, :5], memory, 0)]
        parts += [ours(tokens[:, at : at + 1], memory, at) for at in range(5, SIZE)]
    size = float(expected.abs().max())
    assert float((whole - expected).abs().max()) < 1e-4 * size
    assert float((torch.cat(parts, 1) - expected).abs().max()) < 1e-4 * size


def session(mode: str, dtype: str, shape: _decoder.Shape = LLAMA, **knobs: str) -> Any:
    """A session of a small decoder with random weights, on stock PyTorch."""
    return generation(shape, SIZE, mode, dtype, "stock", **knobs)


@pytest.mark.parametrize("mode", ["prefill", "decode"])
@pytest.mark.parametrize(("dtype", "shape"), [("fp32", LLAMA), ("fp32", QWEN), ("bf16", LLAMA)])
def test_a_decoder_is_proven_and_true_to_its_float64_outputs(mode: str, dtype: str, shape: _decoder.Shape) -> None:
    opened = session(mode, dtype, shape)
    for _ in range(3 * SIZE):  # whatever was read before changes nothing
        opened.step()
    assert failed(opened.proof()) == set()
    metrics, checks = opened.accuracy()
    assert failed(checks) == set()
    assert "accuracy" not in metrics
    assert metrics["agreement"] == 1


def test_low_precision_holds_its_weights_in_the_dtype() -> None:
    """A step of a served model reads two bytes a weight. Under autocast it would read four, and convert them."""
    opened = session("decode", "bf16")
    assert {value.dtype for value in opened.network.parameters()} == {torch.bfloat16}
    check = named(opened.proof(), "weights_held")
    assert (check.ok, check.found.split(" in ")[1], check.expected) == (True, "bfloat16", "all in bfloat16")
    plain = session("decode", "bf16", weights="autocast")
    assert {value.dtype for value in plain.network.parameters()} == {torch.float32}
    assert "weights_held" not in [check.name for check in plain.proof()]


def test_weights_that_stayed_in_fp32_are_caught() -> None:
    """One layer that a stack forgot is enough."""
    network = decoder(LLAMA).to(torch.bfloat16)
    network.layers[1].up.float()
    check = _generation.held_in(network, "bfloat16")
    assert not check.ok
    assert "in float32" in check.found


@pytest.mark.parametrize(("name", "millions"), [("llama_135m", 134.5), ("qwen_500m", 494.0), ("llama_1b", 1235.8)])
def test_they_are_as_large_as_the_published_ones(name: str, millions: float) -> None:
    with torch.device("meta"):
        network = registry.models.get(name).build()
    count = sum(value.numel() for value in network.parameters())
    assert count / 1e6 == pytest.approx(millions, abs=0.1)


GROUPED = dataclasses.replace(LLAMA, width=64, inner=128)
"""With as many inputs in each layer as a group has weights."""


@pytest.mark.parametrize(("mode", "dtype"), [("prefill", "fp32"), ("decode", "bf16")])
@pytest.mark.parametrize("knobs", [{"weights": "int8"}, {"weights": "int4", "weight_group": "32"}])
def test_packed_weights_are_proven_and_as_true_as_rounded_ones(mode: str, dtype: str, knobs: dict[str, str]) -> None:
    """The outputs are as far from float64 as those of plain PyTorch with the same rounded weights."""
    opened = session(mode, dtype, GROUPED, **knobs)
    opened.step()
    checks = opened.proof()
    assert failed(checks) == set()
    assert named(checks, "packed_kernels").found.startswith("15 of 15 layers in aten::_weight_int")
    assert named(checks, "packed_weights").found.endswith("bits each")
    _, checks = opened.accuracy()
    assert failed(checks) == set()
    assert "stock, eager, same dtype" in named(checks, "fidelity").expected


def test_packed_weights_stand_for_the_rounded_ones() -> None:
    """A kernel multiplies by exactly what `rounded` says, within the rounding of fp32."""
    torch.manual_seed(0)
    layer, inputs = torch.nn.Linear(64, 32).requires_grad_(requires_grad=False), torch.randn(3, 5, 64)
    for kind, group in (("int8", 64), ("int4", 32), ("int4", 64)):
        packed = _stock_weights.PackedLinear(layer, kind, group)
        weight = rounding.rounded(layer.weight.detach(), kind, group)
        expected = torch.nn.functional.linear(inputs, weight, layer.bias)
        outputs = packed(inputs)
        assert outputs.shape == expected.shape
        assert float((outputs - expected).abs().max()) < 1e-4
        error = float((weight - layer.weight).abs().max() / layer.weight.abs().max())
        assert error < {"int8": 0.005, "int4": 0.08}[kind]
        assert error > {"int8": 0.0005, "int4": 0.02}[kind], "nothing was rounded"


def test_layers_that_were_never_packed_are_caught() -> None:
    """A label that claims 4 bits over a network that was left as it is."""
    network, tokens = decoder(GROUPED), torch.arange(SIZE)[None]
    checks = _stock_weights.proof(network, lambda: network(tokens), "int4", 15)
    assert [check.ok for check in checks] == [False, False]
    assert checks[1].found.startswith("0 of 15 layers")
    half = _stock_weights.pack(decoder(GROUPED), "int4", 64)
    half.layers[1].up = torch.nn.Linear(64, 128)
    checks = _stock_weights.proof(half, lambda: half(tokens), "int4", 15)
    assert [check.ok for check in checks] == [True, False]
    assert checks[1].found.endswith("1 in other products")


def test_groups_that_do_not_divide_the_inputs_of_a_layer_are_refused() -> None:
    with pytest.raises(WorkerError, match=r"groups of 64 do not divide the 32 inputs of the layer head"):
        session("decode", "bf16", LLAMA, weights="int4")


@pytest.mark.parametrize(
    ("device", "dtype", "knobs", "reason"),
    [
        ("cpu", "bf16", (("weights", "int8"),), None),
        ("cpu", "fp32", (("weights", "int4"),), None),
        ("cpu", "fp32", (("weights", "cast"),), "weights=cast would change nothing in fp32"),
        ("cpu", "int8", (("weights", "int8"),), "the knob weights is for fp32, bf16, fp16, not for int8"),
        ("xpu", "bf16", (("weights", "int8"),), "weights=int8 is built for cpu"),
        ("cpu", "bf16", (("weight_group", "32"),), "the knob weight_group is for weights=int4"),
        ("cpu", "bf16", (("weight_group", "32"), ("weights", "int4")), None),
    ],
)
def test_where_weights_can_be_packed(
    device: str, dtype: str, knobs: tuple[tuple[str, str], ...], reason: str | None
) -> None:
    cell = Cell("llama_135m", device, dtype, "decode", "stock", knobs)
    known = {knob.name: knob for knob in _generation.KNOBS}
    reasons = [known[name].why_not(cell, value, Facts("python", {})) for name, value in knobs]
    answer = next(filter(None, reasons), None)
    assert answer == reason or (reason is not None and str(answer).startswith(reason))


@pytest.mark.parametrize(
    ("dtype", "flags", "reason"),
    [
        ("fp32", {"avx2"}, "without AVX-512 IPEX unpacks weights=int8 in each step, and multiplies in fp32"),
        ("fp32", AVX512, None),
        ("bf16", AVX512, "without AMX IPEX unpacks weights=int8 in each step, and multiplies in fp16"),
        ("bf16", AVX512 | {"amx_bf16"}, None),
    ],
)
def test_ipex_packs_weights_where_it_multiplies_them(dtype: str, flags: set[str], reason: str | None) -> None:
    """Seen with AVX2 and AVX-512: beside its own operator each layer ran in a plain product, and took far longer."""
    facts = Facts("python", {"torch": "2.8.0", "intel-extension-for-pytorch": "2.8.0"}, cpu_flags=frozenset(flags))
    cell = Cell("llama_135m", "cpu", dtype, "decode", "ipex", (("weights", "int8"),))
    assert registry.stacks.get("ipex").why_not(cell, facts) == reason


def test_two_looks_at_decoding_see_the_same_step() -> None:
    """Attention has another shape with each token, so looks at whatever comes next would differ."""
    opened = session("decode", "fp32")
    for _ in range(3):
        opened.step()
    captured = fingerprint.capture(opened.looks(opened.bench.device))
    assert captured["unstable"] == []
    assert captured["digest"]
    opened.step()
    assert fingerprint.capture(opened.looks(opened.bench.device))["digest"] == captured["digest"]
