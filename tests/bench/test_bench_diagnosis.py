"""Why torch sees no accelerator: each missing thing has its own sentence, on a machine made of files."""

import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from ipexperf.bench.machine import diagnosis
from ipexperf.bench.machine.diagnosis import INTEL, NVIDIA, Machine


def torch_with(*, compiled: bool = True, available: bool = False, says: str = "") -> Any:
    """A torch that has both accelerators' modules, and that much of a driver."""

    def init() -> None:
        if says:
            raise RuntimeError(says)

    module = SimpleNamespace(is_available=lambda: available, _is_compiled=lambda: compiled, init=init)
    version = SimpleNamespace(cuda="12.8" if compiled else None, hip=None)
    return SimpleNamespace(__version__="2.8.0", xpu=module, cuda=module, version=version)


MASK, RENDER = "ZE_AFFINITY_MASK", "dri/renderD128"
ARC: dict[str, Any] = {"cards": {INTEL: "i915"}, "nodes": [RENDER]}
LIBRARIES = {"libze_loader.so.1", "libze_intel_gpu.so.1", "libcuda.so.1"}


def machine(
    root: Path,
    cards: Mapping[str, str] = MappingProxyType({}),
    nodes: Sequence[str] = (),
    closed: Collection[str] = (),
    variables: Mapping[str, str] = MappingProxyType({}),
    lacks: str = "",
) -> Machine:
    """A machine made of files, with cards by vendor and driver."""
    for number, (vendor, driver) in enumerate(cards.items(), 3):
        device = root / f"sys/bus/pci/devices/0000:0{number}:00.0"
        device.mkdir(parents=True)
        (device / "vendor").write_text(f"{vendor}\n")
        (device / "class").write_text("0x030000\n")
        if driver:
            taken = root / "sys/bus/pci/drivers" / driver
            taken.mkdir(parents=True)
            (device / "driver").symlink_to(taken)
    for name in nodes:
        (root / "dev" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "dev" / name).touch()
    return Machine(root, (LIBRARIES - {lacks}).__contains__, lambda path: path.name not in closed, variables)


@pytest.mark.parametrize("device", ["xpu", "cuda"])
def test_a_device_that_torch_can_use_needs_no_diagnosis(tmp_path: Path, device: str) -> None:
    """Torch has the last word: on an empty machine too, what it sees is there."""
    assert diagnosis.why_not(device, torch_with(available=True), machine(tmp_path)) == ""


@pytest.mark.parametrize(
    ("device", "made", "torch", "told"),
    [
        # the build comes first: no driver helps a torch without support for the card
        ("xpu", {"cards": {INTEL: "xe"}}, {"compiled": False}, "--index-url https://download.pytorch.org/whl/xpu"),
        ("cuda", {}, {"compiled": False}, "is built without CUDA"),
        ("npu", {}, {}, "torch 2.8.0 has no npu support"),
        # no card, or only one of another vendor
        ("xpu", {}, {}, "there is no /dev/dri/renderD*, and the PCI bus has no Intel GPU"),
        ("xpu", {"cards": {NVIDIA: "nvidia"}}, {}, "has no Intel GPU"),
        # a card without a driver, or in a container that was not given it
        ("xpu", {"cards": {INTEL: ""}}, {}, "for the Intel GPU at 0000:03:00.0: load i915 or xe"),
        ("cuda", {"cards": {NVIDIA: "nvidia"}}, {}, "a container needs --gpus all"),
        # a device file that may not be opened: one that opens is enough
        ("xpu", {"nodes": [RENDER], "closed": {"renderD128"}}, {}, "add them to its group"),
        ("xpu", {"nodes": [RENDER, "dri/renderD129"], "closed": {"renderD128"}}, {}, "no card that torch can use"),
        # a library that is not installed
        ("xpu", {"nodes": [RENDER], "lacks": "libze_loader.so.1"}, {}, "is not installed: install libze1"),
        ("cuda", {"nodes": ["nvidia0"], "lacks": "libcuda.so.1"}, {}, "libcuda.so.1 is not installed"),
        # where nothing is missing, what selects cards and torch's own first line are told
        ("xpu", {**ARC, "variables": {MASK: "1"}}, {}, f"with {MASK}=1, and no card that torch can use"),
        ("cuda", {"nodes": ["nvidia0"]}, {"says": "driver too old.\nPlease update."}, "(torch says: driver too old.)"),
        # Windows Subsystem for Linux has another device file
        ("xpu", {"nodes": ["dxg"]}, {}, "no card that torch can use"),
    ],
)
def test_the_first_thing_that_is_missing_has_a_sentence(
    tmp_path: Path, device: str, made: dict[str, Any], torch: dict[str, Any], told: str
) -> None:
    assert told in diagnosis.why_not(device, torch_with(**torch), machine(tmp_path, **made))


@pytest.mark.process
@pytest.mark.parametrize("device", ["xpu", "cuda", "tpu"])
def test_what_no_torch_could_use_is_told_before_one_is_fetched(device: str) -> None:
    """`make bench DEVICE=xpu` asks an interpreter that has nothing but Python's own library."""
    if device in ("xpu", "cuda") and Machine().cards({"xpu": INTEL, "cuda": NVIDIA}[device]):
        pytest.skip(f"there is a card for {device} here")
    done = subprocess.run(
        [sys.executable, "-S", "-m", "ipexperf.bench.machine.diagnosis", device],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith(f"error: DEVICE={device} cannot be used on this machine: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.process
@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
@pytest.mark.parametrize(
    ("more", "source"),
    [((), "--index-url https://download.pytorch.org/whl/xpu"), (("WHEELS=wheels",), "--no-index --find-links wheels")],
)
def test_make_takes_torch_for_intel_gpus_from_its_own_index(more: tuple[str, ...], source: str) -> None:
    """Into an environment of its own, and without the pins that are for IPEX."""
    words = ("make", "-n", "bench", "DEVICE=xpu", *more)
    # Below another make, as in `make test`, it would say more.
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(words, cwd=Path(__file__).parents[2], env=own, capture_output=True, text=True, check=True)
    installs = [line for line in done.stdout.splitlines() if "pip install" in line and "pip>=" not in line]
    assert installs == [
        f".venv-xpu/bin/python -m pip install -q {source} torch torchvision",
        '.venv-xpu/bin/python -m pip install -q -e ".[dev]"',
    ]
    assert done.stdout.splitlines()[0].endswith("ipexperf.bench.machine.diagnosis xpu")
