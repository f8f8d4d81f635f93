"""Intel's real driver and SYCL, on a machine without a card: what is found, how it is chosen, and what is said of it.

`python tests/driver/make.py .driver` makes their folder. The driver is told which product it drives, compiles its
kernels and executes none of them, so that nothing here is about speed.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sysfs import add_card

from ipexperf.bench.devices._accelerator import Accelerator
from ipexperf.bench.devices._telemetry import Telemetry
from ipexperf.bench.devices.xpu import Xpu
from ipexperf.conduct import lease

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".driver"
PYTHON = FOLDER / "bin" / "python"
DRIVER = FOLDER / "latest/usr/lib/x86_64-linux-gnu/libze_intel_gpu.so.1"
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
TELLING = """
import json, sys
from ipexperf import cli
from ipexperf.bench.machine.facts import Facts

read = Facts.from_json
Facts.from_json = lambda document: print(json.dumps(document), file=sys.stderr) or read(document)
sys.exit(cli.main(sys.argv[1:]))
"""
"""A command that tells the facts too that it has asked a worker for."""
SYCL = (
    "import dpctl\nfor card in dpctl.get_devices(backend='level_zero', device_type='gpu'):\n"
    "    print(card.global_mem_size, card.partition_max_sub_devices)"
)
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


def sycl(product: str, **variables: str) -> list[list[str]]:
    """The memory of each device that SYCL finds, and how many tiles it may be parted into."""
    return [line.split() for line in ask(product, "-c", SYCL, **variables).stdout.splitlines()]


@pytest.mark.parametrize(
    ("product", "variables", "able"),
    [
        (ALCHEMIST, {}, set()),
        (BATTLEMAGE, {}, {"float64"}),
        (LUNAR_LAKE, {}, {"float64", "integrated"}),
        (MAX, TWO_TILES, {"float64"}),
    ],
)
def test_each_product_is_found_and_doctor_describes_it(product: str, variables: dict[str, str], able: set[str]) -> None:
    """Each tile of a card."""
    doctor = ask(product, "-c", TELLING, "doctor", "--device", "xpu", "--no-pairs", **variables)
    found = json.loads(doctor.stderr.splitlines()[-1])["cards"]["xpu"]
    assert len(found) == (2 if variables else 1)
    for number, card in enumerate(found):
        assert {name for name in ("float64", "integrated") if card[name]} == able
        assert card["memory"] > 8 * GIB
        [line] = [line for line in doctor.stdout.splitlines() if f" xpu {number} " in line]
        told = f"{card['name']}, {card['memory'] / GIB:.1f} GiB, driver {card['driver']}"
        told += "" if able else ", no float64: fp16 training is left out"
        assert re.fullmatch(rf"ok +xpu {number} +{re.escape(told)}", line)


def test_two_drivers_are_compared_to_the_end_and_told_apart_by_their_versions(tmp_path: Path) -> None:
    """That of Ubuntu 26.04 and that of Debian's next release. Computing is the fake card's, and on its clock alike."""
    words = (
        f"--a driver:{FOLDER}/former --b driver:{FOLDER}/latest --max-pairs 2 --perf-without=roof --perf-lease=off "
        f"--perf-load={ROOT}/tests/fakes/smallnet.py --model smallnet --device xpu --dtype fp32 --mode infer "
        f"--stack stock --perf-batch=1 --perf-db={tmp_path}/x.db --perf-cache={tmp_path}/cache"
    )
    done = ask(ALCHEMIST, "-m", "ipexperf.cli", "ab", *words.split())
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("b against a: ok: ")
    [versions] = re.findall(r"^differs +accelerator\.driver: 1\.(\d+)\.\d+ -> 1\.(\d+)\.", done.stdout, re.MULTILINE)
    assert int(versions[0]) < int(versions[1])


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
    [(memory, parts)] = sycl(MAX, **TWO_TILES, **{**given, **chosen})
    assert (int(memory) // GIB, parts) == (gib, str(tiles))


def test_of_two_cards_with_two_tiles_each_has_one_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tiles are two devices, and with a mask of one there is one."""
    monkeypatch.setattr(Accelerator, "telemetry", Telemetry(tmp_path))
    whole = sycl(MAX, **TWO_CARDS, **TWO_TILES, **COMPOSITE)
    for number, (_, tiles) in enumerate(whole):
        add_card(tmp_path, number, f"0000:{number + 1:02}:00.0", tiles=int(tiles))
    count = len(sycl(MAX, **TWO_CARDS, **TWO_TILES))
    assert [lease.claims("xpu", index, {}) for index in range(count)] == [{"shared:cpu", f"xpu-{n}"} for n in "0011"]
    assert len(sycl(MAX, **TWO_CARDS, **TWO_TILES, ZE_AFFINITY_MASK="1")) == 1


@pytest.mark.parametrize(
    ("product", "words", "variables", "sentence"),
    [
        (ALCHEMIST, "--device xpu", {"ZE_AFFINITY_MASK": "7"}, "can't run workers: SIGSEGV with ZE_AFFINITY_MASK=7"),
        (MAX, "--device xpu", {"ONEAPI_DEVICE_SELECTOR": "opencl:gpu"}, "torch 2.* sees no XPU"),
        (MAX, "--device xpu", {"ZE_ENABLE_ALT_DRIVERS": "/nowhere/libze.so"}, "torch 2.* sees no XPU"),
        (MAX, "--device xpu:2", TWO_TILES, "there is no xpu device 2: torch sees 2, counted from 0"),
        (ALCHEMIST, "--device xpu --dtype fp16 --mode train", {}, "needs float64 for its gradient scaler"),
    ],
)
def test_what_cannot_run_on_a_product_is_one_sentence(
    product: str, words: str, variables: dict[str, str], sentence: str
) -> None:
    """SYCL crashes where a mask leaves nothing."""
    command = ("cases", "--model", "resnet18", "--stack", "stock", *words.split())
    told = ask(product, "-m", "ipexperf.cli", *command, **variables)
    assert told.returncode == 2
    [line] = told.stderr.splitlines()
    assert re.search(sentence, line)
