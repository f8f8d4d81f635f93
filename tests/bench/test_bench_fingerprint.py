"""A fingerprint is the same for the same software, says so where it is not, and disturbs nothing."""

import json
import random
import sys
from collections.abc import Callable
from typing import Any

import inductors_code
import pytest
from bench_cases import bench, network

from ipexperf.bench import registry
from ipexperf.bench.api import Captured, Kernel
from ipexperf.bench.cell import Settings
from ipexperf.proof import compilation, fingerprint, onednn
from ipexperf.proof.templates import LAYER, kernels

torch = pytest.importorskip("torch")

CPU = registry.devices.get("cpu")
GRAPH = """graph(%self : __torch__.Net, %x : Tensor):
  %4 : int[] = prim::Constant[value=[1, 1]]()
  %5 : Tensor = ipex_prepack::convolution_relu_run(%x, %4)
  %6 : Tensor, %7 : Tensor = ipex::LlgaFusionGroup_3(%5)
  %8 : Tensor = prim::TensorExprGroup_12[Subgraph=<Graph>](%6)
  %9 : Tensor = aten::relu(%8), scope: __module.0 # conv.py:543:0
  return (%9)
with prim::TensorExprGroup_12 = graph(%0 : Tensor):
  %1 : Tensor = aten::relu(%0)
"""


def of_network() -> Callable[[], Any]:
    """Steps of a small network."""
    made, images = network().eval(), torch.randn(4, 3, 8, 8)

    def step() -> Any:
        with torch.no_grad():
            return made(images)

    return step


def test_a_step_has_the_same_digest_each_time() -> None:
    """Operators, primitives and the processor are seen; ten captures agree to the letter, and have times beside it."""
    step = of_network()
    step()
    found = [fingerprint.capture(fingerprint.of_step(step, CPU)) for _ in range(10)]
    assert len({one["digest"] for one in found}) == 1
    one = found[0]
    assert one["digest"] == fingerprint.digest(one["structure"])
    assert (one["unstable"], one["missing"], one["unparsed"]) == ([], {}, [])
    assert {"aten::addmm", "aten::batch_norm"} <= {row["operator"] for row in one["structure"]["operators"]}
    assert [row["calls"] for row in one["structure"]["primitives"] if row["primitive"] == "convolution"] == [1]
    assert one["structure"]["processor"]["threads"] == torch.get_num_threads()
    assert one["structure"]["processor"]["onednn"] == onednn.isas() != []
    assert len(one["times"]["operators"]) == len(one["structure"]["operators"])
    assert len(json.dumps(one)) < 20_000


def test_the_calls_of_python_are_counted() -> None:
    """Those of functions in Python and in C; an operator more is a call more. Functions of the user's are named."""

    def helper() -> int:
        return len([])

    def calls(step: Callable[[], Any]) -> Any:
        return fingerprint.python_calls(step)["calls"]

    assert calls(lambda: None) == 1
    assert calls(helper) == 2
    assert calls(lambda: [helper() for _ in range(10)]) in (21, 22)  # 3.12 inlines comprehensions
    named = fingerprint.python_calls(lambda: json.loads(f"[{helper()}]"))["functions"]
    assert [name.rpartition("/")[2] for name in named] == ["test_bench_fingerprint.py: helper"]
    assert sys.getprofile() is None


def test_a_step_has_counts_that_do_not_depend_on_the_clock() -> None:
    step = of_network()
    step()
    first, second = (fingerprint.capture(fingerprint.of_step(step, CPU))["beside"] for _ in range(2))
    assert first == second
    assert first["counts"]["operators"] > 5
    assert first["python"]["calls"] > 5
    more = fingerprint.capture(fingerprint.of_step(lambda: step().neg_(), CPU))["beside"]
    assert more["counts"]["operators"] == first["counts"]["operators"] + 1
    assert more["python"]["calls"] > first["python"]["calls"]


def test_a_structure_that_is_random_is_said_to_be_unstable() -> None:
    """Two looks at once that differ have no digest, and name the section; what was the same is not blamed."""
    chance, step = random.Random(3), of_network()  # noqa: S311 - no secret

    def moody() -> Any:
        found = step()
        for _ in range(chance.randrange(1000)):
            found = found + 1
        return found

    found = fingerprint.capture(fingerprint.of_step(moody, CPU))
    assert (found["digest"], found["unstable"]) == (None, ["operators"])


def test_each_row_has_the_less_of_two_times_and_a_section_how_far_they_are_apart() -> None:
    """The less is nearer to what a step takes without the profiler."""
    seconds = iter([[1.0, 2.0], [1.5, 1.0]])
    found = fingerprint.capture({"look": lambda: {"operators": Captured([1, 2], next(seconds))}})
    assert (found["times"], found["spread"]) == ({"operators": [1.0, 1.0]}, {"operators": 0.5})


def test_a_line_that_nobody_can_read_is_kept_and_counted() -> None:
    """It is told, cut to a bounded length, and its count is part of the structure."""
    line = "onednn_verbose,v9," + "x" * 1000
    found = fingerprint.capture({"primitives": lambda: fingerprint.primitives(onednn.read(f"{line}\n" * 9))})
    assert found["structure"]["library"]["unparsed"] == 9
    assert found["unparsed"] == [line[: fingerprint.LINE]] * fingerprint.SHOWN


def test_a_printed_graph_is_summed_up_by_kind() -> None:
    """Constants are none of it, and numbers that the process gave are left out of names."""
    seen = fingerprint.graph(GRAPH)["graph"].structure
    assert {row["node"]: row["calls"] for row in seen} == {
        "ipex_prepack::convolution_relu_run": 1,
        "ipex::LlgaFusionGroup": 1,
        "prim::TensorExprGroup": 1,
        "aten::relu": 2,
    }


def test_compiled_code_is_summed_up_by_what_it_calls() -> None:
    """Breaks are told without the place in a file, which moves with every line above it; comments call nothing."""
    code = (
        "# extern_kernels.mm(a)\ncpp_fused_relu_0(buf0)\n  extern_kernels.mm(a)\n"
        "  torch.ops.mkldnn._linear_pointwise(x)"
    )
    breaks = {"generic_jump at /home/me/net.py:17": 2}
    seen = fingerprint.compiled(1, 3, breaks, [code])["compiled"].structure
    assert seen["calls"] == {"cpp_fused_relu_0": 1, "extern_kernels.mm": 1, "torch.ops.mkldnn._linear_pointwise": 1}
    assert seen["breaks"] == {"generic_jump at #": 2}
    moved = fingerprint.compiled(1, 3, {"generic_jump at /tmp/net.py:18": 2}, [code])["compiled"].structure
    assert moved == seen


def layers(outputs: Any, weights: Any, bias: Any) -> Any:
    """Two alike, which share their kernels."""
    for _ in range(2):
        outputs = torch.nn.functional.linear(outputs, weights, bias).relu().softmax(-1) + 1
    return outputs


@pytest.mark.parametrize("device", ["xpu", "cuda"])
@pytest.mark.parametrize("templates", [False, True])
def test_code_for_a_card_is_summed_up_by_what_it_calls(device: str, *, templates: bool) -> None:
    """As inductor writes it: a kernel in Triton is run, while its source defines it, and a layer may be a template."""
    code = inductors_code.generated(device, layers, (64, 128), (128, 128), (128,), templates=templates)
    product, rest = ("triton_tem_fused_0", 1) if templates else ("extern_kernels.addmm", 0)
    calls = fingerprint.compiled(1, 1, {}, [code])["compiled"].structure["calls"]
    assert calls == {product: 2, f"triton_per_fused_{rest}": 2}
    written = Kernel(LAYER, ("float32", "float32"))
    assert kernels(code) == ([written, written] if templates else [])
    [check] = compilation.on_device([code], device)
    assert (check.ok, f"on {device}" in check.found) == (True, True)


@pytest.mark.parametrize(
    ("mode", "sections"),
    [
        ("infer", {"operators", "primitives", "library", "processor", "flops"}),
        ("infer_jit", {"operators", "primitives", "library", "processor", "flops", "graph"}),
        ("train", {"operators", "primitives", "library", "processor", "flops"}),
        ("load", None),
    ],
)
def test_each_mode_tells_what_it_has(mode: str, sections: set[str] | None) -> None:
    """A session is looked at through its own steps; a cold start was timed, and has no second one to look at."""
    CPU.start(Settings())
    session: Any = registry.modes.get(mode).open(bench(network, mode, CPU))
    if mode != "train":
        assert (session.compile_time is not None) == (mode == "infer_jit"), "only a graph has a compile time"
    for _ in range(4):
        session.step()
    found = fingerprint.of(session, CPU)
    session.close()
    if sections is None:
        assert found is None
        return
    assert found is not None
    assert set(found["structure"]) == sections
    assert found["missing"] == {}
    assert found["digest"]
    assert found["structure"]["flops"] == found["beside"]["work"]["step_flops"] > 0
    assert found["beside"]["work"]["items"] == session.items(session.bench.case.batch)
