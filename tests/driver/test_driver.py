"""Intel's real driver and SYCL, on a machine without a card: what is found, how it is chosen, and what is said of it.

`python tests/driver/make.py .driver` makes their folder. The driver is told which product it drives, compiles its
kernels and executes none of them, so that nothing here is about speed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sysfs import add_card

from ipexperf.bench.devices._accelerator import Accelerator
from ipexperf.bench.devices._telemetry import Telemetry
from ipexperf.bench.devices.xpu import Xpu
from ipexperf.conduct import lease

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".driver"
PYTHON = FOLDER / "bin" / "python"
DRIVER = FOLDER / "root/usr/lib/x86_64-linux-gnu/libze_intel_gpu.so.1"
SIMULATED = {
    "ZE_ENABLE_ALT_DRIVERS": str(DRIVER),
    "NEOReadDebugKeys": "1",
    "SetCommandStreamReceiver": "1",
    "UseAubStream": "0",
    "UseBindlessMode": "0",
    "HardwareInfoOverride": "8x4x16",
}
"""What makes the driver start without a card."""
ALCHEMIST, BATTLEMAGE, LUNAR_LAKE, MAX = "dg2", "bmg", "lnl", "pvc"
TWO_CARDS, TWO_TILES = {"CreateMultipleRootDevices": "2"}, {"CreateMultipleSubDevices": "2"}
COMPOSITE = {"ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE"}
FACTS = (
    "import json\nfrom ipexperf.conduct.worker import ask_facts\n"
    "print(json.dumps(ask_facts(None, {'xpu': 0}).to_json()))"
)
SYCL = (
    "import dpctl\nfor card in dpctl.get_devices(backend='level_zero', device_type='gpu'):\n"
    "    print(card.global_mem_size, card.partition_max_sub_devices)"
)
ROOTS = """
import ctypes
ze, one, four = ctypes.CDLL("libze_loader.so.1"), ctypes.c_uint32(1), ctypes.c_uint32(4)
driver, tiles, root = ctypes.c_void_p(), (ctypes.c_void_p * 4)(), ctypes.c_void_p()
ze.zeInit(0), ze.zeDriverGet(ctypes.byref(one), ctypes.byref(driver)), ze.zeDeviceGet(driver, ctypes.byref(four), tiles)
for tile in tiles: ze.zeDeviceGetRootDevice(ctypes.c_void_p(tile), ctypes.byref(root)); print(root.value)
"""
"""Prints the card of each of four tiles, where the hierarchy has cards and tiles."""
GIB = 2**30

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not PYTHON.is_file(), reason="needs Intel's driver: python tests/driver/make.py .driver"),
]
pytest.importorskip("torch")


def ask(product: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What a program under the driver of this product prints."""
    shell = {name: value for name, value in os.environ.items() if not name.startswith(("ZE_", "ONEAPI_"))}
    ours = [ROOT, *(ROOT / "tests" / name for name in ("driver", "fakes"))]
    path = os.pathsep.join([*map(str, ours), *(part for part in sys.path if part.endswith("site-packages"))])
    environment = {**shell, **SIMULATED, "ProductFamilyOverride": product, "PYTHONPATH": path, **variables}
    return subprocess.run([PYTHON, *words], env=environment, capture_output=True, text=True, check=False)


def cards(product: str, **variables: str) -> list[dict[str, Any]]:
    """The cards that a run would plan for."""
    told = ask(product, "-c", FACTS, **variables)
    assert told.returncode == 0, told.stderr
    found: list[dict[str, Any]] = json.loads(told.stdout)["cards"].get("xpu", [])
    return found


@pytest.mark.parametrize(
    ("product", "able"),
    [(ALCHEMIST, set()), (BATTLEMAGE, {"float64"}), (LUNAR_LAKE, {"float64", "integrated"}), (MAX, {"float64"})],
)
def test_each_product_is_found_and_described(product: str, able: set[str]) -> None:
    [card] = cards(product)
    assert card["name"].startswith("Intel(R) Graphics [0x")
    assert {name for name in ("float64", "integrated") if card[name]} == able
    assert card["driver"].startswith("1.")
    assert card["memory"] > 8 * GIB


def test_doctor_says_which_card_there_is_and_what_it_cannot() -> None:
    told = ask(ALCHEMIST, "-m", "ipexperf.cli", "doctor", "--device", "xpu", "--model", "resnet18", "--mode", "train")
    [line] = [line for line in told.stdout.splitlines() if " xpu 0 " in line]
    assert line.startswith("ok")
    assert line.endswith("no float64: fp16 training is left out")


@pytest.mark.parametrize(
    ("given", "index", "gib", "tiles"),
    [
        ({}, 1, 12, 0),
        ({"ZE_AFFINITY_MASK": "1"}, 0, 12, 0),
        ({"ONEAPI_DEVICE_SELECTOR": "level_zero:1"}, 0, 12, 0),
        ({"ONEAPI_DEVICE_SELECTOR": "level_zero:0,1", "ZE_AFFINITY_MASK": "0,1"}, 1, 12, 0),
        (COMPOSITE, 0, 25, 2),
        ({**COMPOSITE, "ZE_AFFINITY_MASK": "0.1"}, 0, 12, 0),
        ({**COMPOSITE, "ZE_AFFINITY_MASK": "0.0,0.1"}, 0, 25, 2),
    ],
)
def test_a_worker_sees_the_one_card_or_tile_that_is_meant(
    given: dict[str, str], index: int, gib: int, tiles: int
) -> None:
    """Of a Max 1550, whose tiles are devices unless the hierarchy joins them: a mask of both is one device then."""
    chosen = Xpu().variables(index, given)
    told = ask(MAX, "-c", SYCL, **TWO_TILES, **{**given, **chosen})
    assert [line.split() for line in told.stdout.splitlines()] == [[told.stdout.split()[0], str(tiles)]]
    assert int(told.stdout.split()[0]) // GIB == gib


def test_two_cards_are_two_and_a_mask_leaves_one() -> None:
    assert len(cards(ALCHEMIST, **TWO_CARDS)) == 2
    assert len(cards(ALCHEMIST, **TWO_CARDS, ZE_AFFINITY_MASK="1")) == 1


def test_the_tiles_that_the_driver_takes_for_one_card_have_one_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hierarchy = {"ZE_FLAT_DEVICE_HIERARCHY": "COMBINED"}
    roots = ask(MAX, "-c", ROOTS, **TWO_CARDS, **TWO_TILES, **hierarchy).stdout.split()
    monkeypatch.setattr(Accelerator, "telemetry", Telemetry(tmp_path))
    for number in range(2):
        add_card(tmp_path, number, f"0000:{number + 1:02}:00.0", tiles=2)
    held = [lease.claims("xpu", index, hierarchy) for index in range(4)]
    assert held == [{"shared:cpu", f"xpu-{list(dict.fromkeys(roots)).index(root)}"} for root in roots]


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"ZE_AFFINITY_MASK": "7"}, "can't run workers: SIGSEGV with ZE_AFFINITY_MASK=7"),
        ({"ONEAPI_DEVICE_SELECTOR": "opencl:gpu"}, "torch 2.* sees no XPU"),
        ({"ZE_ENABLE_ALT_DRIVERS": "/nowhere/libze.so"}, "torch 2.* sees no XPU"),
    ],
)
def test_what_leaves_no_card_is_one_sentence(variables: dict[str, str], sentence: str) -> None:
    """SYCL crashes where a mask leaves nothing."""
    told = ask(MAX, "-m", "ipexperf.cli", "cases", "--device", "xpu", "--model", "resnet18", **variables)
    assert told.returncode == 2
    [line] = told.stderr.splitlines()
    assert re.search(sentence, line)
