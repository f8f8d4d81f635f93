"""The device xpu on a fake of torch.xpu: what would be wrong on a real card in silence is caught here."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench_cases import HEAVY_STEP, named

from ipexperf.bench import lazy, measure, registry
from ipexperf.bench.cell import Settings
from ipexperf.bench.devices import cuda
from ipexperf.bench.devices.xpu import Xpu
from ipexperf.bench.machine import facts
from ipexperf.bench.outcome import outcome_of
from ipexperf.bench.process import environment
from ipexperf.errors import UsageError, WorkerError

torch = pytest.importorskip("torch")
fake_xpu = pytest.importorskip("fake_xpu")
fake_card = pytest.importorskip("fake_card")


def test_a_sample_counts_the_work_of_the_card(device: Xpu, step: Callable[[], Any]) -> None:
    """The queue is filled in an instant; the sample lasts until the card is through it."""
    [(wall, _, _)] = measure.sample(step, device.synchronise, count=1, block=5)
    assert wall >= HEAVY_STEP * fake_xpu.HEAVY


def test_a_card_that_is_waited_for_is_proven(device: Xpu, step: Callable[[], Any]) -> None:
    """All the checks of the device hold for a network that runs where it should."""
    checks = device.proof(step, 3)
    assert [(check.name, check.ok) for check in checks] == [
        ("arithmetic", True),
        ("synchronised", True),
        ("fallbacks", True),
    ]
    assert device.metrics(step, 3)["device_time"] == pytest.approx(HEAVY_STEP * fake_xpu.HEAVY, rel=0.01)


def test_a_runtime_without_a_clock_is_still_asked_whether_it_was_done(
    device: Xpu, card: Any, step: Callable[[], Any]
) -> None:
    """Without timing events there is no device_time, which is said; a card that is not done is caught all the same."""
    card.without_timing = True
    assert named(device.proof(step, 3), "synchronised").ok
    assert "device_time" not in device.metrics(step, 3)
    assert "xpu has no timer here: elapsed_time is not supported by this runtime" in device.notes()
    device.start(Settings())
    card.waits = False
    assert not named(device.proof(step, 3), "synchronised").ok


def test_a_clock_in_another_unit_is_not_recorded(device: Xpu, card: Any, step: Callable[[], Any]) -> None:
    """It says a thousandth of what the host saw; more than the host saw is a synchronisation that does not wait."""
    card.unit = 1e-3
    assert named(device.proof(step, 3), "synchronised").ok
    assert "device_time" not in device.metrics(step, 3)
    assert any("its clock says" in note for note in device.notes())
    device.start(Settings())
    card.unit = 1e3
    assert not named(device.proof(step, 3), "synchronised").ok


def test_one_tile_is_another_machine_than_two(device: Xpu, card: Any) -> None:
    """All have the card's name; what they measure is never compared."""
    keys = set()
    for changed in ({}, {"max_compute_units": 1024}, {"total_memory": 2**35}):
        card.properties = fake_xpu.Properties(**changed)
        device.start(Settings())
        keys.add(environment.machine_key({**environment.hardware(), "accelerator": device.describe()}))
    assert len(keys) == 3
    assert all(key.startswith("intel-arc-a770-graphics-") for key in keys)


def test_the_card_is_described_by_what_torch_knows_of_it(device: Xpu) -> None:
    """Name, driver, size and abilities are recorded; what this torch does not tell is not made up."""
    card = device.describe()
    assert card["properties"] == "Intel(R) Arc(TM) A770 Graphics"
    assert (card["driver"], card["memory"], card["pinned"]) == ("1.6.32567+18", 15473 * 2**20, "ZE_AFFINITY_MASK=0")
    assert (card["gpu_eu_count"], card["has_fp64"], card["sub_group_sizes"]) == (512, False, (8, 16, 32))
    assert "has_bfloat16_conversions" not in card


def test_a_pin_that_did_not_take_is_an_error(card: Any) -> None:
    """A worker that sees two cards would measure one of them, and nobody knows which."""
    card.count = 2
    with pytest.raises(
        WorkerError, match="ZE_AFFINITY_MASK=0 should leave the worker one xpu device, but torch sees 2"
    ):
        Xpu().start(Settings())


@pytest.fixture
def driver(card: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Says how many cards the driver has: torch from 2.13 on counts these until it is initialised, selected or not."""
    if not hasattr(torch.xpu, "_device_count_zes"):
        pytest.skip("this torch asks SYCL alone, whose cards are those that are selected")
    return lambda count: monkeypatch.setattr(torch.xpu, "_device_count_zes", lambda: count)


def test_cards_that_are_not_selected_do_not_count(driver: Callable[[int], None]) -> None:
    """A run of two cards ended in a traceback."""
    driver(2)
    assert len(facts.gather({"xpu": 0}).cards["xpu"]) == 1


def test_a_worker_counts_the_cards_that_it_may_use(driver: Callable[[int], None]) -> None:
    """The pin looked as if it had not taken."""
    driver(2)
    Xpu().start(Settings())


def test_a_card_of_the_driver_that_torch_cannot_initialise_is_not_there(
    card: Any, driver: Callable[[int], None]
) -> None:
    driver(1)
    card.count = 0
    assert "sees no XPU" in facts.gather({"xpu": 0}).accelerators["xpu"]


@pytest.mark.parametrize(
    ("index", "mask", "selector", "card"),
    [
        (0, None, "level_zero:1", "1"),
        (1, None, "level_zero:0,2", "2"),
        (0, "2,5", "level_zero:1", "5"),
        (1, "2,5", "level_zero:*", "5"),
        (1, None, "level_zero:gpu", "1"),
    ],
)
def test_a_card_that_sycls_selector_names_is_that_one(index: int, mask: str | None, selector: str, card: str) -> None:
    """It counts what the mask leaves, so that `level_zero:1` beside a mask of one card would leave none."""
    environment = {"ONEAPI_DEVICE_SELECTOR": selector, **({"ZE_AFFINITY_MASK": mask} if mask else {})}
    chosen = {**environment, **Xpu().variables(index, environment)}
    assert chosen["ZE_AFFINITY_MASK"] == card
    assert chosen["ONEAPI_DEVICE_SELECTOR"] in ("level_zero:*", "level_zero:gpu")


def test_a_mask_of_both_tiles_of_a_card_is_one_device_where_the_hierarchy_joins_them() -> None:
    mask = {"ZE_AFFINITY_MASK": "0.0,0.1,1.1"}
    joined = {**mask, "ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE"}
    assert [Xpu().variables(index, joined)["ZE_AFFINITY_MASK"] for index in (0, 1)] == ["0.0,0.1", "1.1"]
    assert Xpu().variables(0, mask) == {"ZE_AFFINITY_MASK": "0.0"}


def test_a_card_that_sycls_selector_leaves_out_is_told() -> None:
    reason = "--device xpu:1: there is no such device: ONEAPI_DEVICE_SELECTOR=level_zero:1 leaves 1"
    with pytest.raises(UsageError, match=reason):
        Xpu().variables(1, {"ONEAPI_DEVICE_SELECTOR": "level_zero:1"})


@pytest.mark.parametrize(
    ("index", "allowed", "variable"),
    [(0, None, "0"), (3, None, "3"), (1, "2, 5", "5"), (0, "0.1", "0.1"), (1, "GPU-a,GPU-b", "GPU-b")],
)
def test_the_index_counts_the_cards_that_we_may_use(index: int, allowed: str | None, variable: str) -> None:
    """A mask that somebody set is kept: the index is one of its cards."""
    environment = {} if allowed is None else {"ZE_AFFINITY_MASK": allowed}
    assert Xpu().variables(index, environment) == {"ZE_AFFINITY_MASK": variable}
    assert registry.devices.get("cuda").variables(2, {}) == {"CUDA_VISIBLE_DEVICES": "2"}
    assert registry.devices.get("cpu").variables(2, {}) == {}
    with pytest.raises(UsageError, match="--device xpu:2: there is no such device: ZE_AFFINITY_MASK=0,1"):
        Xpu().variables(2, {"ZE_AFFINITY_MASK": "0,1"})


def test_facts_tell_how_many_cards_there_are_from_the_chosen_one_on(card: Any) -> None:
    """An index that no card has is told before anything runs, and is no lost device."""
    card.count = 2
    arc = {
        "name": "Intel(R) Arc(TM) A770 Graphics",
        "memory": 15473 * 2**20,
        "driver": "1.6.32567+18",
        "float64": False,
        "integrated": False,
    }
    assert facts.gather({"xpu": 0}).cards == {"xpu": [arc, arc]}
    assert facts.gather({"xpu": 1}).cards == {"xpu": [arc]}
    card.properties = fake_xpu.Properties(has_fp64=True)
    assert facts.gather({"xpu": 0}).float64("xpu")
    beyond = facts.gather({"xpu": 2})
    assert beyond.cards == {}
    assert beyond.accelerators == {"xpu": "there is no xpu device 2: torch sees 2, counted from 0"}


def test_the_processors_own_graphics_are_not_taken_for_the_card_beside_them(
    card: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The training that seemed slow on the Arc ran elsewhere. A mask that shows it alone says that it is meant."""
    own = SimpleNamespace(name="Intel(R) Graphics", is_integrated_gpu=True)
    card.count, card.properties, card.others = 2, own, [fake_xpu.Properties()]
    gathered = facts.gather({"xpu": 0})
    reason = "xpu device 0, Intel(R) Graphics, is part of the processor: --device xpu:1 takes Intel(R) Arc"
    assert gathered.accelerators["xpu"].startswith(reason)
    assert gathered.cards == {}
    assert facts.gather({"xpu": 1}).accelerators == {"xpu": ""}
    fake_xpu.install(monkeypatch).properties = own
    assert facts.gather({"xpu": 0}).accelerators == {"xpu": ""}


def test_facts_tell_where_a_compiler_finds_the_header_of_the_driver(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "level_zero").mkdir()
    (tmp_path / "level_zero" / "ze_api.h").touch()
    monkeypatch.setenv("CPATH", f"/nowhere:{tmp_path}")
    gathered = facts.gather()
    assert gathered.lacks_header(facts.LEVEL_ZERO_H) is None
    assert facts.Facts.from_json(gathered.to_json()) == gathered


def test_a_tensor_goes_there_from_pinned_memory_without_blocking(device: Xpu, card: Any) -> None:
    """The host does not wait for a copy; and pins without naming a device, which torch has deprecated."""
    before = card.clock.now
    moved = device.put(torch.zeros(4))
    assert card.calls["copied without blocking"] == 1
    assert moved.device.type == "xpu"
    assert card.clock.now - before < fake_xpu.HOST + fake_xpu.LIGHT


def test_memory_is_the_cards_own(device: Xpu, card: Any, step: Callable[[], Any]) -> None:
    """The peak is what lay on the card at once; what the allocator holds beyond is told beside it."""
    device.reset_memory()
    before = device.memory()["peak_memory"]
    held = device.put(torch.zeros(2**20, dtype=torch.uint8))
    assert device.memory()["peak_memory"] == before + 2**20
    del held
    assert device.memory()["peak_memory"] == before + 2**20
    known = card.reserved
    assert known >= device.memory()["peak_memory"]
    device.put(torch.zeros(2**25, dtype=torch.uint8))  # what comes later is not the case's
    assert device.metrics(step, 1)["reserved_memory"] == known < card.reserved


def test_a_lost_card_is_device_lost(device: Xpu, card: Any, step: Callable[[], Any]) -> None:
    """Wherever the runtime says it first, the launch's outcome is device_lost; the stopwatch swallows none of it."""
    device.proof(step, 1)
    card.lost = True
    for asked in (step, device.synchronise, lambda: device.put(torch.zeros(1))):
        with pytest.raises(RuntimeError) as lost:
            asked()
        assert outcome_of(lost.value) == "device_lost"


def test_what_torch_does_not_know_of_an_nvidia_card_is_asked_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver's version is the kernel module's own; the card's name for nvidia-smi is its UUID."""
    path = tmp_path / "version"
    monkeypatch.setattr(cuda, "_DRIVER", path)
    device = cuda.Cuda()
    assert device.driver(None) is None
    path.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n")
    assert device.driver(None) == "535.104.05"
    path.write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n")
    assert device.driver(None) == "570.86.15"
    cards = SimpleNamespace(get_device_properties=lambda _: SimpleNamespace(uuid="1234-5678"))
    monkeypatch.setattr(lazy.torch, "cuda", cards)
    assert (device.card(), device.address()) == ("GPU-1234-5678", None)
    place = SimpleNamespace(pci_domain_id=0, pci_bus_id=0x3B, pci_device_id=0)
    monkeypatch.setattr(lazy.torch, "cuda", SimpleNamespace(get_device_properties=lambda _: place))
    assert device.address() == "0000:3b:00.0"


def test_a_card_that_moves_its_memory_to_the_host_tells_how_full_it_is(device: Xpu, card: Any) -> None:
    """Where the driver does not tell, nothing is assumed. What this process has is known by torch."""
    assert device.room() is None
    card.reserved = device.describe()["memory"] // 4
    assert device.taken() == 0.25
    card.free = device.describe()["memory"] // 8
    assert device.room() == 0.125
