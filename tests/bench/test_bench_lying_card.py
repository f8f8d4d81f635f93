"""A card that lies: what each lie would do to the numbers, and what catches it."""

from __future__ import annotations

import contextlib
import gc
import io
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from bench_cases import HEAVY_STEP, SIZE, bench, named, network
from bench_cases import failed as failed_checks

from ipexperf.bench import loading, registry
from ipexperf.bench.api import Settings
from ipexperf.bench.devices._telemetry import Telemetry
from ipexperf.bench.devices.xpu import Xpu
from ipexperf.bench.process import environment, worker
from ipexperf.case import Case
from ipexperf.errors import WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

torch = pytest.importorskip("torch")
fake_card = pytest.importorskip("fake_card")
fake_xpu = pytest.importorskip("fake_xpu")
lying_xpu = pytest.importorskip("lying_xpu")

ROOT = Path(__file__).parents[2]
SMALLNET = str(ROOT / "tests" / "fakes" / "smallnet.py")
MIB = 2**20


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The lying card in place of the honest one, for `device` and `step` too."""
    monkeypatch.setenv("ZE_AFFINITY_MASK", "0")
    made = fake_xpu.install(monkeypatch, kind=lying_xpu.LyingXpu)
    with fake_card.Ways(made):
        yield made


@pytest.fixture
def ask(device: Xpu, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[dict[str, Any]]]]:
    """Asks the worker for a case on the card, as the controller does: requests in, replies out."""
    monkeypatch.setattr(registry.devices, "_items", {**registry.devices._items, "xpu": device})
    loading.load((SMALLNET,))
    case = Case("smallnet", "xpu", "fp32", "infer", "stock", 16, SIZE, 1, "digits")
    settings = asdict(Settings(load=(SMALLNET,)))

    def ask(*requests: str, **more: Any) -> list[dict[str, Any]]:
        lines = [{"do": "begin", "case": case.to_json(), "settings": settings}]
        lines += [{"do": request, **more} for request in ("prepare", *requests)]
        output = io.StringIO()
        worker.serve(io.StringIO("".join(json.dumps(line) + "\n" for line in lines)), output)
        parsed = [json.loads(line) for line in output.getvalue().splitlines()]
        _, begun, *replies = [reply for reply in parsed if "say" not in reply]
        return replies if begun["ok"] else [begun, *replies]

    yield ask
    gc.unfreeze()  # a worker freezes what it has before its samples


def failed(replies: list[dict[str, Any]]) -> dict[str, Any]:
    """The first reply that is no success; the worker's controller asks nothing more after it."""
    return next(reply for reply in replies if not reply["ok"])


@pytest.mark.parametrize("after", [4, 60], ids=["warm-up", "samples"])
def test_a_launch_with_a_failed_kernel_is_an_error(card: Any, ask: Callable[..., Any], after: int) -> None:
    """In the warm-up or among the samples: the launch ends with the runtime's words, and what they may mean."""
    card.fails_at = after
    reply = failed(ask("warm", "sample", count=40, block=1))
    assert reply["outcome"] == "error"
    assert reply["reason"] == f"RuntimeError: {lying_xpu.LATE}; the runtime reports full memory by this error too"


def test_a_card_that_vanishes_is_lost(card: Any, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of the samples; and whoever starts on it afterwards, in a process of its own, finds none."""
    card.vanishes_at = 60
    assert failed(ask("warm", "sample", count=40, block=1))["outcome"] == "device_lost"
    fake_xpu.install(monkeypatch, count=0)
    with pytest.raises(WorkerError) as refused:
        Xpu().start(Settings())
    assert refused.value.outcome == "device_lost"


def test_memory_that_fragments_is_a_note_before_it_is_an_error(card: Any, ask: Callable[..., Any]) -> None:
    """A short run gets by with it; the reserve that grew while nothing new was asked for is said."""
    card.fragments = MIB
    notes = ask("warm", "sample", "memory", "metrics", count=20, block=1)[-1]["notes"]
    [grown] = [note for note in notes if "reserve grew" in note]
    assert "memory fragments or leaks" in grown
    card.fragments = 2000 * MIB
    reply = failed(ask("warm", "sample", count=20, block=1))
    assert reply["outcome"] == "out_of_memory"
    assert "reserved by PyTorch but unallocated" in reply["reason"]


def test_kernels_that_are_made_on_first_use_are_in_no_sample(card: Any, ask: Callable[..., Any]) -> None:
    """Seconds for each kernel are in the first step, which is recorded apart."""
    *_, sampled = ask("warm", "sample", count=5, block=1)
    honest = [wall for wall, _, _ in sampled["samples"]]
    card.compiles = 3.0
    _, warm, sampled = ask("warm", "sample", count=5, block=1)
    assert warm["first_step"] > HEAVY_STEP * 3.0
    assert [wall for wall, _, _ in sampled["samples"]] == pytest.approx(honest, rel=0.01)


def test_a_clock_in_another_unit_is_not_recorded(card: Any, device: Xpu, step: Callable[[], Any]) -> None:
    """It says a thousandth of what the host saw; more than the host saw is a synchronisation that does not wait."""
    card.unit = 1e-3
    assert named(device.proof(step, 3), "synchronised").ok
    assert "device_time" not in device.metrics(step, 3)
    assert any("its clock says" in note for note in device.notes())
    device.start(Settings())
    card.unit = 1e3
    assert not named(device.proof(step, 3), "synchronised").ok


@pytest.mark.parametrize(("lie", "operator"), [("remembers", "convolution"), ("forgets", "relu")])
def test_work_that_is_left_out_is_wrong(card: Any, device: Xpu, lie: str, operator: str) -> None:
    """Old answers and operators without effect are fast; the float64 reference on the host has others."""
    session = registry.modes.get("infer").open(bench(network, device=device))
    setattr(card, lie, {operator})
    for _ in range(3):
        session.step()
    _, checks = session.accuracy()
    assert not named(checks, "fidelity").ok


@pytest.mark.parametrize("mode", ["infer", "train"])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_card_without_float64_runs_whole_cases(card: Any, device: Xpu, mode: str, dtype: str) -> None:
    """On an Arc of the A series each float64 tensor is an error: no case of ours makes one there."""
    assert not card.properties.has_fp64
    with pytest.raises(RuntimeError, match="aspect fp64 is not supported"):
        device.put(torch.zeros(2, dtype=torch.float64))
    plain = bench(network, mode, device)
    session = registry.modes.get(mode).open(replace(plain, case=replace(plain.case, dtype=dtype)))
    session.sample(device.synchronise, 2, 1)
    _, bounds = session.accuracy()
    assert failed_checks([*session.proof(), *device.proof(session.step, 1)]) == set()
    assert "fidelity" not in failed_checks(bounds)


def test_autocast_that_leaves_operators_in_fp32_is_caught(
    device: Xpu, card: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bf16 on the label, fp32 in the kernels: the dtype of the operands says so."""
    plain = bench(network, "infer", device)
    session = registry.modes.get("infer").open(replace(plain, case=replace(plain.case, dtype="bf16")))
    assert named(session.proof(), "dtype").ok
    monkeypatch.setattr(torch.amp, "autocast", lambda *_, **__: contextlib.nullcontext())
    check = named(session.proof(), "dtype")
    assert (check.ok, "float32" in check.found) == (False, True)


@pytest.mark.parametrize("change", [{"max_compute_units": 1024}, {"total_memory": 2 * 15473 * MIB}])
def test_one_tile_is_another_machine_than_two(card: Any, tmp_path: Path, change: dict[str, int]) -> None:
    """Both have the card's name; what they measure is never compared."""
    device = Xpu()
    device.telemetry = Telemetry(tmp_path, lambda _: None)
    machine = environment.hardware()
    keys = []
    for properties in (card.properties, replace(card.properties, **change)):
        card.properties = properties
        device.start(Settings())
        keys.append(environment.machine_key({**machine, "accelerator": device.describe()}))
    assert keys[0] != keys[1]
    assert all(key.startswith("intel-arc-a770-graphics-") for key in keys)
