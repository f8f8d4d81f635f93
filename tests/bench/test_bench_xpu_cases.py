"""Cases on a fake of torch.xpu: where the work was really done, and whole cases from the weights to the accuracy."""

import dataclasses
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench_cases import bench, failed, named, network

from ipexperf.bench import registry
from ipexperf.bench.api import Workbench
from ipexperf.bench.cell import Settings
from ipexperf.bench.devices import xpu
from ipexperf.bench.devices._telemetry import Telemetry
from ipexperf.bench.devices.xpu import Xpu
from ipexperf.bench.stacks.stock import Stock
from ipexperf.proof import fingerprint, profiler

torch = pytest.importorskip("torch")
fake_xpu = pytest.importorskip("fake_xpu")


def test_an_operator_that_falls_back_to_the_cpu_is_caught_by_name(
    device: Xpu, card: Any, step: Callable[[], Any]
) -> None:
    """It warned once, in the first step; the proof comes later and sees it still."""
    card.falls_back = {"relu"}
    with pytest.warns(UserWarning, match="fallback from XPU to CPU"):
        step()
    check = named(device.proof(step, 1), "fallbacks")
    assert (check.ok, check.found, check.expected) == (False, "on the CPU: aten::relu x1", "0")


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        (fake_xpu.FALLBACK, "an operator without a name"),
        ("The operator 'aten::dot on the XPU backend is falling back to run on the CPU.", "aten::dot"),
        ("The operator 'aten::doton the XPU backend and will fall back to run on the CPU.", "aten::dot"),
        ("The operator 'aten::geqrf.a' is not currently supported on the XPU backend and will fall", "aten::geqrf.a"),
    ],
)
def test_every_wording_of_the_warning_is_known(text: str, operator: str) -> None:
    """torch-xpu-ops and IPEX say it in four ways: a step that only warns is caught too, and other warnings pass."""
    with pytest.warns(UserWarning, match="something else"):
        counts = xpu.fallen_back(
            lambda: (warnings.warn(text, stacklevel=1), warnings.warn("something else", stacklevel=1))
        )
    assert counts == {operator: 1}
    assert not xpu.check_fallbacks(counts).ok


def test_torchs_own_fallback_is_seen_without_any_warning() -> None:
    """Torch's lazy device leaves operators to the CPU by the same C++ function as xpu: the profiler names them."""
    import torch._lazy.ts_backend

    torch._lazy.ts_backend.init()
    matrix = torch.eye(3).to("lazy")
    assert xpu.fallen_back(lambda: torch.linalg.qr(matrix)) == {"aten::linalg_qr": 1}
    assert xpu.fallen_back(lambda: matrix + 1) == {}


class InPlace(Stock):
    """Optimises the very network that it is given, as IPEX does on xpu; and makes it wrong by so much."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def for_inference(self, network: Any, example: Any, bench: Workbench) -> Any:
        with torch.no_grad():
            network[-1].weight.mul_(self.factor)
        return network


@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (2.0, False)])
def test_a_stack_that_works_in_place_does_not_change_what_it_is_held_against(
    device: Xpu,
    factor: float,
    right: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """The float64 reference is of untouched weights: an optimisation that breaks its own network is caught."""
    wrong = dataclasses.replace(bench(network, device=device), stack=InPlace(factor))
    session = registry.modes.get("infer").open(wrong)
    _, checks = session.accuracy()
    assert named(checks, "fidelity").ok is right


def test_what_ipex_ignores_on_xpu_is_a_note(device: Xpu) -> None:
    """IPEX takes settings there and does nothing with them: whoever reads the numbers is told, and on cpu is not."""
    ipex = registry.stacks.get("ipex")
    (note,) = ipex.notes(bench(network, device=device, stack="ipex"))
    for name in ("weights_prepack", "graph_mode", "auto_kernel_selection", "sample_input", "in place"):
        assert name in note
    assert ipex.notes(bench(network, device=registry.devices.get("cpu"), stack="ipex")) == []
    session: Any = registry.modes.get("infer").open(bench(network, device=device))
    session.bench = dataclasses.replace(session.bench, stack=ipex)
    assert note in session.notes()


@pytest.mark.parametrize(
    ("graph", "ok"),
    [
        ("%3 = torch_ipex::conv2d_relu(%1, %2)", True),
        ("%3 = xpu::_convolution_sum_relu(%1, %2)", True),
        ("%2 = aten::conv2d(%1)\n%3 = aten::relu(%2)", False),
        ("%3 = aten::linear(%1, %2)", True),
    ],
)
def test_fusion_on_xpu_is_looked_for_under_its_names_there(
    device: Xpu,
    graph: str,
    ok: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """No prepacked nodes are asked of a graph on xpu, where IPEX packs nothing; fused ones are."""
    checks = registry.stacks.get("ipex").proof_of_graph(graph, bench(network, device=device, stack="ipex"))
    assert [(check.name, check.ok) for check in checks] == [("graph_fusion", ok)]


class FusedAdam:
    """An optimizer as IPEX leaves it on xpu: fused, and with a master copy of each weight that was cast to bf16."""

    def __init__(self) -> None:
        cast = SimpleNamespace(split=False, parameter_trail=None, master_parameter=object())
        self.params_attr = {"weight": cast}

    def step(self) -> None: ...

    step.__qualname__ = "adam_step"


FusedAdam.__name__ = "Adam"


def test_ipex_splits_the_weights_of_sgd_alone_on_xpu(device: Xpu) -> None:
    """A fused Adam has master copies there, which is as it should be."""
    case = bench(network, "train", device=device, stack="ipex")
    case = dataclasses.replace(case, case=dataclasses.replace(case.case, dtype="bf16"))
    checks = case.stack.proof_of_training(network(), FusedAdam(), case)
    assert {check.name: check.ok for check in checks} == {"fused_optimizer": True, "split_master_weight": True}


def test_what_a_model_replaces_for_ipex_is_in_its_build_for_cpus_alone(device: Xpu) -> None:
    """Merged bags and the interaction of DLRM: on a card the network is as the user wrote it, and nothing is missed."""
    replaced = {"tuned": {"ipex": lambda _: None}, "operators": {"ipex": ("torch_ipex::interaction_forward",)}}
    for place, alone in ((device, True), (registry.devices.get("cpu"), False)):
        case = bench(network, device=place, stack="ipex")
        case = dataclasses.replace(case, model=dataclasses.replace(case.model, **replaced))
        plain = network()
        assert (case.tuned(plain) is plain, case.operators == ()) == (alone, alone)


def test_kernels_that_the_profiler_did_not_record_are_missing_and_not_gone(
    device: Xpu, step: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some versions of torch record none of some cards. Without a digest nothing says that kernels were removed."""
    events = profiler.traced(step)
    monkeypatch.setattr(profiler, "traced", lambda *_, **__: events)
    captured = fingerprint.capture({"operators": fingerprint.of_step(step, device)["operators"]})
    assert (captured["missing"], captured["digest"]) == ({"kernels": fingerprint.UNRECORDED}, None)
    assert [*captured["structure"]] == ["operators"]


@pytest.mark.parametrize("source", ["device", "host"])
def test_a_whole_training_case_runs_on_the_card(device: Xpu, card: Any, source: str) -> None:
    """Batches on the card or pinned in the host's memory: the label is proven, and the wait for a batch is told."""
    knobs = {} if source == "device" else {"input": source}
    session = registry.modes.get("train").open(bench(network, "train", device, **knobs))
    session.sample(device.synchronise, 2, 2)
    metrics = session.metrics()
    checks = [*session.proof(), *device.proof(session.step, 1)]
    assert [str(check) for check in checks if not check.ok] == []
    assert ("input_time" in metrics) == (source == "host")
    copied = named(checks, "input").found
    assert copied.endswith("0 copied in a step" if source == "device" else "1 copied in a step")
    assert os.environ["ZE_AFFINITY_MASK"] == "0"


class OnTheHost(Xpu):
    """Leaves everything where it is: how LPRNet came to look slow on an Arc."""

    def put(self, value: Any) -> Any:
        return value


def test_a_training_that_stays_on_the_cpu_is_caught(card: Any, tmp_path: Path) -> None:
    """It trains as well as any other: only where it did so is not what its label says, and three checks see that."""
    device = OnTheHost()
    device.telemetry = Telemetry(tmp_path, lambda _: None)
    device.start(Settings())
    session = registry.modes.get("train").open(bench(network, "train", device))
    session.sample(device.synchronise, 2, 1)
    checks = [*session.proof(), *device.proof(session.step, 1)]
    assert failed(checks) == {"device", "input", "arithmetic"}
    assert {"steps", "weights_move"} <= {check.name for check in checks}
