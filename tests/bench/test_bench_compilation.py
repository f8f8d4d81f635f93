"""torch.compile: what dynamo counted, what inductor wrote and what a step then ran; and that no liar gets through."""

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from ipexperf.bench import registry
from ipexperf.bench.api import Kernel
from ipexperf.bench.devices import _accelerator
from ipexperf.bench.machine import facts
from ipexperf.bench.machine.facts import Facts
from ipexperf.proof import compilation, label, profiler
from ipexperf.proof.compilation import Tally
from ipexperf.result import Check

torch = pytest.importorskip("torch")

from bench_cases import bench, failed, flat

needs_compiler = pytest.mark.skipif(not facts.gather().compiler, reason="needs a C++ compiler")
pytestmark = [
    pytest.mark.usefixtures("compiler"),
    # Torch's compiler uses what torch and Python have deprecated.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"),
]


class Whole(torch.nn.Module):  # type: ignore[misc]
    """One linear layer, in one graph."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, images: Any) -> Any:
        return self.inner(images)


class Prints(Whole):
    def forward(self, images: Any) -> Any:
        result = self.inner(images)
        print("half way")
        return self.inner(result)


class Branches(Whole):
    def forward(self, images: Any) -> Any:
        result = self.inner(images)
        return self.inner(result) if result.sum() > 0 else result


def looked_at(network: Any, calls: int = 2) -> dict[str, Check]:
    """What is said of a network that torch.compile has: without inductor, which has no part in what is counted."""
    images, before = torch.ones(2, 4), Tally.read()
    compiled = torch.compile(network, backend="eager")
    with torch.no_grad():
        compiled(images)
        after = Tally.read()
        for _ in range(calls):
            compiled(images)
    return {check.name: check for check in compilation.whole(after.since(before), Tally.read().since(after))}


def test_a_whole_network_is_one_graph_and_stays_it() -> None:
    """One graph, no break, nothing compiled after the first call, and no way back to eager."""
    checks = looked_at(Whole())
    assert failed(checks.values()) == set(), checks
    assert checks["graphs"].found == "1 graphs in 1 frames, 0 graph breaks"
    assert list(checks) == ["graphs", "recompilation", "eager_fallback"]


@pytest.mark.parametrize("liar", [Prints, Branches])
def test_a_network_that_breaks_its_graph_is_caught(liar: type[Whole]) -> None:
    """A print is told with its reason; a branch on a value is no break for dynamo, and shows in the frames."""
    found = looked_at(liar())["graphs"]
    assert not found.ok
    assert (": " in found.found) == ("0 graph breaks" not in found.found)


def test_a_frame_without_a_tensor_is_no_part_of_the_network() -> None:
    """Such as a hook that Python calls when a compiler is started. Dynamo looks at it, and leaves it."""
    before = Tally.read()
    torch.compile(Whole(), backend="eager")(torch.ones(2, 4))
    torch._dynamo.utils.counters["frames"]["total"] += 1
    first = Tally.read().since(before)
    assert (first.graphs, first.frames, first.attempts) == (1, 1, 2)


def test_a_way_back_to_eager_is_caught() -> None:
    """Where errors of the compiler are suppressed nobody knows what ran."""
    with torch._dynamo.config.patch(suppress_errors=True):
        assert failed(looked_at(Whole()).values()) == {"eager_fallback"}


def test_a_step_must_be_one_stretch_of_compiled_code() -> None:
    """Eager arithmetic has no stretch, what is done beside it lies outside, and two are a broken graph."""
    network, images = Whole(), torch.ones(2, 4)
    compiled, broken = torch.compile(network, backend="eager"), torch.compile(Prints(), backend="eager")
    steps: dict[str, Callable[[], Any]] = {
        "compiled": lambda: compiled(images),
        "eager": lambda: network(images),
        "beside": lambda: network(compiled(images)),
        "broken": lambda: broken(images),
        "idle": lambda: None,
    }
    with torch.no_grad():
        compiled(images), broken(images)
        told = {name: compilation.one_region(profiler.traced(step)) for name, step in steps.items()}
    assert {name: check.found for name, check in told.items()} == {
        "compiled": "1 compiled regions, 1 of 1 operators inside",
        "eager": "0 compiled regions, 0 of 1 operators inside",
        "beside": "1 compiled regions, 1 of 2 operators inside",
        "broken": "2 compiled regions, 2 of 2 operators inside",
        "idle": "0 compiled regions, 0 of 0 operators inside",
    }
    assert [name for name, check in told.items() if check.ok] == ["compiled"]


def test_looking_where_arithmetic_runs_leaves_compiled_code_alone() -> None:
    """Below a dispatch mode Dynamo gives up a network's code for good, so the look runs the network itself."""
    network, images = Whole(), torch.ones(2, 4)
    compiled = torch.compile(network, backend="eager")
    with torch.no_grad():
        compiled(images)
        assert _accelerator.arithmetic_devices(lambda: compiled(images)) == {"cpu": 1}
        assert compilation.one_region(profiler.traced(lambda: compiled(images))).ok


@pytest.mark.parametrize(
    ("code", "ok", "found"),
    [
        ("buf0 = empty_strided_cuda((8, 4), (4, 1), torch.float32)", True, "1 on cuda"),
        ("buf0 = empty_strided_cpu((8, 4), (4, 1), torch.float32)", False, "1 on cpu"),
        ("buf0 = empty_strided_cpu((), (), torch.float32)", True, "none"),
        ("buf0 = empty_strided((8, 4), (4, 1), device='cuda', dtype=torch.float32)", True, "1 on cuda"),
        ("buf0 = empty_strided((8, 4), (4, 1), device='late', dtype=torch.float32)", False, "1 on late"),
        ("buf0 = empty_strided((), (), device='late', dtype=torch.float32)", True, "none"),
    ],
)
def test_code_for_a_card_that_makes_tensors_on_the_cpu_is_caught(code: str, ok: bool, found: str) -> None:  # noqa: FBT001
    [check] = compilation.on_device(
        [f"empty_strided_cpu = torch._C._dynamo.guards._empty_strided_cpu\n{code}\n"], "cuda"
    )
    assert (check.ok, check.found) == (ok, f"tensors of the generated code: {found}")
    assert compilation.on_device([code], "cpu") == []


FROZEN = """
def call(args):
    arg12_1, = args
    args.clear()
    buf0 = torch.ops.mkldnn._convolution_pointwise.default(arg12_1, _frozen_param33, _frozen_param31, [1, 1], 1, 'relu')
"""
LOOSE = """
class Runner:
    def call(self, args):
        arg0_1, arg1_1, arg2_1 = args
        args.clear()
"""


def test_weights_that_are_given_to_the_code_are_not_frozen() -> None:
    """Frozen code takes the inputs alone, of which a task may have several; code that cannot be read proves nothing."""
    assert compilation.frozen(FROZEN, 1).ok
    assert (compilation.frozen(LOOSE, 1).ok, compilation.frozen(LOOSE, 1).found) == (
        False,
        "code called with 3 tensors",
    )
    assert compilation.frozen(LOOSE, 3).ok
    assert not compilation.frozen("", 1).ok
    # With `freezing=off` frozen code would be another case.
    assert compilation.frozen(LOOSE, 1, wanted=False).ok
    assert not compilation.frozen(FROZEN, 1, wanted=False).ok


def test_the_backend_tells_whether_it_was_to_time_kernels() -> None:
    """As with `max_autotune=on`."""
    assert compilation.autotuned(torch.compile(Whole(), mode="max-autotune-no-cudagraphs")).ok
    plain = compilation.autotuned(torch.compile(Whole()))
    assert (plain.ok, plain.found.partition(",")[0]) == (False, "max_autotune is False")


@pytest.mark.parametrize("before", [None, "/somewhere"])
def test_what_is_compiled_has_a_cache_of_its_own(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    """The folder is new and empty, it is gone afterwards, and the variable is as it was."""
    monkeypatch.delenv(compilation.CACHE, raising=False)
    if before:
        monkeypatch.setenv(compilation.CACHE, before)
    with compilation.afresh() as folder:
        assert os.environ[compilation.CACHE] == str(folder)
        assert list(folder.iterdir()) == []
        (folder / "code.py").touch()
    assert not folder.exists()
    assert os.environ.get(compilation.CACHE) == before


def test_the_processes_that_compile_are_over_when_the_steps_begin() -> None:
    """They would go on importing torch beside the first samples, and hold its memory."""
    from torch._inductor.async_compile import AsyncCompile

    with compilation.afresh():
        pool = AsyncCompile.process_pool()
        assert pool.process.poll() is None
    assert pool.process.poll() is not None


def event(name: str, kinds: list[str], dims: list[list[int]], strides: list[list[int]]) -> dict[str, Any]:
    """As torch's profiler wrote them, of a small network that inductor had frozen."""
    return {"name": name, "args": {"Input type": kinds, "Input Dims": dims, "Input Strides": strides}}


IMAGES, LAST = [8, 3, 16, 16], [768, 1, 48, 3]
LISTS = ["ScalarList", "ScalarList", "ScalarList", "Scalar", "", "", ""]


def convolution(weights: str = "float", bias: str = "float", *, last: bool = True) -> dict[str, Any]:
    dims, strides = [IMAGES, [32, 3, 3, 3], [32]], [LAST if last else [768, 256, 16, 1], [27, 1, 9, 3], [1]]
    return event("mkldnn::_convolution_pointwise", ["float", weights, bias, *LISTS], dims, strides)


def test_the_operators_of_frozen_code_tell_both_operands_and_the_layout() -> None:
    """Images and weights are looked at, and where something is added to the result that too; a bias is not."""
    linear = event("mkl::_mkl_linear", ["float", "float", "float", "", "Scalar"], [[8, 256], [10, 256], [10, 256]], [])
    added = ["c10::BFloat16", "c10::BFloat16", "float", "c10::BFloat16", *LISTS]
    fused = event("mkldnn::_convolution_pointwise_", added, [IMAGES, IMAGES, [3, 3, 1, 1], [3]], [LAST, LAST])
    found = label.kernels([convolution(bias="c10::BFloat16"), linear, fused, {"name": "aten::relu", "args": {}}])
    assert found == [
        Kernel("mkldnn::_convolution_pointwise", ("float32", "float32"), "channels_last"),
        Kernel("mkl::_mkl_linear", ("float32", "float32", "float32")),
        Kernel("mkldnn::_convolution_pointwise_", ("bfloat16", "bfloat16", "float32"), "channels_last"),
    ]
    assert not label.dtype_of_kernels(found, "bf16").ok


def test_frozen_weights_of_another_dtype_or_layout_are_caught() -> None:
    """The label is held against the weights too, and against how the images lie."""
    mixed = label.kernels([convolution(weights="c10::BFloat16")])
    assert label.dtype_of_kernels(mixed, "fp32").found == "float32 x bfloat16 x1"
    assert not label.dtype_of_kernels(mixed, "fp32").ok
    turned = label.kernels([convolution(last=False)])
    assert not label.layout_of_kernels(turned, channels_last=True)[0].ok


def opened(monkeypatch: pytest.MonkeyPatch, compile_it: Callable[[Any], Any] | None = None) -> Any:
    """A session of the mode on stock PyTorch, or on a stack that compiles in another way."""
    stack = registry.stacks.get("stock")
    if compile_it:
        monkeypatch.setattr(stack, "compiled", lambda network, *_: compile_it(network), raising=False)
    workbench = bench(flat, "infer_compile", registry.devices.get("cpu"))
    return workbench.mode.open(workbench)


@needs_compiler
def test_a_compiled_case_keeps_its_proofs_and_its_accuracy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inductor and its freezing, on a real case: everything that the page promises is checked and holds."""
    session = opened(monkeypatch)
    session.sample(lambda: None, 2, 2)
    proven = {check.name: check for check in session.proof()}
    assert failed(proven.values()) == set()
    promised = {"dtype", "graphs", "recompilation", "eager_fallback", "inductor", "compiled_step", "freezing", "stack"}
    assert promised <= set(proven)
    assert all(check.ok for check in session.accuracy()[1])
    counts = session.metrics()
    assert counts["graph_nodes"] > 1
    assert counts["generated_code"] > 1000
    session.close()


@needs_compiler
def test_freezing_that_torch_ignores_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given as an option of torch.compile, freezing is taken and does nothing: the weights stay inputs of the code."""
    session = opened(monkeypatch, lambda network: torch.compile(network, options={"freezing": True}))
    proven = {check.name: check for check in session.proof()}
    assert failed(proven.values()) == {"freezing"}
    assert proven["freezing"].found == "code called with 2 tensors"


@needs_compiler
def test_a_session_that_never_compiled_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The network as it was, under the label of the mode: graphs, code and compiled steps are all missing."""
    session = opened(monkeypatch, lambda network: network)
    assert failed(session.proof()) == {"graphs", "inductor", "compiled_step", "freezing"}


def test_without_a_compiler_there_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The compiler is looked for as torch looks for it: what CXX names, or g++; and the fact travels as JSON."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert facts.gather().uncompiled() == "torch.compile needs a C++ compiler: no g++ in PATH, and CXX names none"
    compiler = tmp_path / "my-c++"
    compiler.touch(0o755)
    monkeypatch.setenv("CXX", "my-c++")
    found = Facts.from_json(facts.gather().to_json())
    assert (found.compiler, found.uncompiled()) == (str(compiler), None)
    assert asdict(found)["compiler"] == str(compiler)
