"""A decoder through torch.compile is one graph for all tokens, and no other one passes for it."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.cell import Cell
from ipexperf.bench.machine import facts
from ipexperf.bench.machine.facts import HEADERS, Facts

torch = pytest.importorskip("torch")

from bench_cases import TOKENS, failed, generation, named

from ipexperf.bench.modes import _compiled_generation
from ipexperf.zoo.models import _decoder

SIZE, BATCH = 8, 2
SHAPE = _decoder.Shape(
    layers=1, width=64, heads=4, key_heads=2, inner=128, vocabulary=TOKENS, positions=2 * SIZE, theta=500.0
)
LAYERS = 8
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
"""Torch's compiler uses what torch and Python have deprecated."""
needs_compiler = pytest.mark.skipif(not facts.gather().compiler, reason="needs a C++ compiler")


@pytest.fixture(autouse=True)
def _one_process(compiler: None) -> Any:
    """Compiles in this process."""
    import torch._inductor.config

    with torch._inductor.config.patch(compile_threads=1):
        yield


def session(mode: str, dtype: str, **knobs: str) -> Any:
    """A session of a small decoder on stock PyTorch."""
    return generation(SHAPE, SIZE, mode, dtype, "stock", **knobs)


def test_modes_that_hold_weights_in_another_way_have_a_bound_of_their_own(tmp_path: Path) -> None:
    """`infer` converts weights in each step, `decode` holds them in bf16: stock PyTorch is not as far off in both."""
    errors = {}
    for folder in ("infer", "decode", "shared"):
        for mode in (folder,) if folder != "shared" else ("infer", "decode"):
            opened = session(mode, "bf16")
            (tmp_path / folder).mkdir(exist_ok=True)
            shared = dataclasses.replace(opened.bench.settings, shared=str(tmp_path / folder))
            opened.bench = dataclasses.replace(opened.bench, settings=shared)
            errors[folder, mode] = opened._rounding(opened.reference)
    assert errors["infer", "infer"] != errors["decode", "decode"]
    assert errors["shared", "infer"] == pytest.approx(errors["infer", "infer"])
    assert errors["shared", "decode"] == pytest.approx(errors["decode", "decode"])


@needs_compiler
def test_all_tokens_are_one_graph() -> None:
    """Those at all positions, and of whole texts for fidelity, run in the code of the first one."""
    opened = session("decode_compile", "fp32", weights="int4", weight_group="32")
    for _ in range(4 * SIZE):
        opened.step()
    assert failed(opened.accuracy()[1]) == set()
    checks = opened.proof()
    assert failed(checks) == set()
    promised = {"graphs", "recompilation", "inductor", "compiled_step", "freezing", "tokens_read", "memory", "stack"}
    assert promised <= {check.name for check in checks}
    assert named(checks, "tokens_read").found == f"{BATCH} tokens in each of {LAYERS} linear layers"
    assert named(checks, "packed_kernels").found.startswith(f"{LAYERS} of {LAYERS} layers in aten::_weight_int4")
    assert opened.compile_time > 0
    structure = opened.looks(opened.bench.device)["compiled"]()["compiled"].structure
    assert (structure["graphs"], structure["breaks"]) == (1, {})


def test_all_prompts_are_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without inductor, whose code is then missing, and with it nothing else."""
    monkeypatch.setattr(registry.stacks.get("stock"), "compiled", lambda network, *_: eager(network), raising=False)
    opened = session("prefill_compile", "fp32")
    for _ in range(3):
        opened.step()
    assert failed(opened.accuracy()[1]) == set()
    checks = opened.proof()
    assert failed(checks) == {"inductor", "freezing"}
    assert named(checks, "tokens_read").found == f"{BATCH * SIZE} tokens in each of {LAYERS} linear layers"
    assert "off the whole text" in named(checks, "memory").found


@pytest.mark.parametrize("mode", ["prefill_compile", "decode_compile"])
def test_tokens_are_counted_where_kernels_have_no_names(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What max_autotune writes is one region without operators, and its module reads as many tokens as it should."""
    monkeypatch.setattr(registry.stacks.get("stock"), "compiled", lambda network, *_: eager(network), raising=False)
    opened = session(mode, "fp32")
    opened.events = []
    tokens = BATCH * (SIZE if mode == "prefill_compile" else 1)
    check = opened.tokens_counted()
    assert (check.ok, check.found) == (
        True,
        f"{tokens} tokens in each of {LAYERS} linear layers of the compiled module",
    )
    read = opened.called
    monkeypatch.setattr(opened, "called", lambda *inputs: (read(*inputs), read(*inputs))[0])
    assert not opened.tokens_counted().ok


def test_a_graph_for_each_position_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A position that is a plain number is a constant of the graph: the next token is compiled anew."""
    monkeypatch.setattr(registry.stacks.get("stock"), "compiled", lambda network, *_: eager(network), raising=False)
    opened = session("decode_compile", "fp32")
    monkeypatch.setattr(opened, "place", lambda begin: begin)
    for _ in range(8):
        opened.step()
    check = named(opened.proof(), "recompilation")
    assert not check.ok
    assert int(check.found.split()[0]) > 0


def eager(network: Any) -> Any:
    """Compile without inductor, which has no part in what is counted."""
    return torch.compile(network, backend="eager")


def test_rows_of_products_are_the_tokens_of_layers() -> None:
    """Of the operators that a linear layer becomes, in a trace as torch's profiler writes it, and of no other."""

    def event(name: str, *dims: list[int]) -> dict[str, Any]:
        return {"name": name, "args": {"Input Dims": list(dims), "Input type": ["float"] * len(dims)}}

    layers = [
        event("aten::addmm", [48], [2, 64], [64, 48]),
        event("aten::mm", [16, 64], [64, 8]),
        event("mkl::_mkl_linear", [2, 8, 64], [8, 64], [8, 64]),
    ]
    others = [event("aten::bmm", [9, 4, 4], [9, 4, 4]), {"name": "aten::mm"}]
    assert _compiled_generation.rows_of_products([*layers, *others]) == [2, 16, 16]


@pytest.mark.parametrize("mode", ["prefill_compile", "decode_compile"])
@pytest.mark.parametrize(
    ("model", "stack", "knobs", "compiler", "reason"),
    [
        ("llama_135m", "stock", (), "g++", None),
        ("llama_135m", "stock", (), "", "torch.compile needs a C++ compiler"),
        ("llama_135m", "ipex", (("weights", "int8"),), "g++", "packed weights of IPEX are not built for torch.compile"),
    ],
)
def test_where_a_decoder_can_be_compiled(
    mode: str, model: str, stack: str, knobs: tuple[tuple[str, str], ...], compiler: str, reason: str | None
) -> None:
    packages = {"torch": "2.8.0", "intel-extension-for-pytorch": "2.8.0"}
    known = Facts("python", packages, frozenset({"avx2"}), compiler=compiler, headers=frozenset(HEADERS))
    cell = Cell(model, "cpu", "fp32", mode, stack, knobs)
    answer = registry.modes.get(mode).why_not(cell, known) or registry.stacks.get(stack).why_not(cell, known)
    assert answer == reason or (reason is not None and reason in str(answer))
