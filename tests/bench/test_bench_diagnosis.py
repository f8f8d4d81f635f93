"""Why torch sees no accelerator: each missing thing has its own sentence, on a machine made of files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
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


class Box:
    """A machine made of files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.libraries = {"libze_loader.so.1", "libze_intel_gpu.so.1", "libcuda.so.1"}
        self.closed: set[str] = set()
        self.variables: dict[str, str] = {}

    def card(self, vendor: str, driver: str = "", address: str = "0000:03:00.0") -> None:
        device = self.root / "sys/bus/pci/devices" / address
        device.mkdir(parents=True)
        (device / "vendor").write_text(f"{vendor}\n")
        (device / "class").write_text("0x030000\n")
        if driver:
            taken = self.root / "sys/bus/pci/drivers" / driver
            taken.mkdir(parents=True, exist_ok=True)
            (device / "driver").symlink_to(taken)

    def node(self, name: str) -> None:
        path = self.root / "dev" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def driver_loaded(self) -> None:
        path = self.root / "proc/driver/nvidia/version"
        path.parent.mkdir(parents=True)
        path.touch()

    @property
    def machine(self) -> Machine:
        return Machine(
            self.root, self.libraries.__contains__, lambda path: path.name not in self.closed, self.variables
        )


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def xpu(box: Box, **torch: Any) -> str:
    return diagnosis.why_not("xpu", torch_with(**torch), box.machine)


def cuda(box: Box, **torch: Any) -> str:
    return diagnosis.why_not("cuda", torch_with(**torch), box.machine)


def test_a_device_that_torch_can_use_needs_no_diagnosis(box: Box) -> None:
    """Torch has the last word: on an empty machine too, what it sees is there."""
    assert (xpu(box, available=True), cuda(box, available=True)) == ("", "")


def test_a_torch_without_the_device_says_which_build_to_install(box: Box) -> None:
    """The build comes first: no driver helps a torch that has no support for the card."""
    box.card(INTEL, "xe")
    assert "is built without XPU support: install the build for Intel GPUs" in xpu(box, compiled=False)
    assert "--index-url https://download.pytorch.org/whl/xpu" in xpu(box, compiled=False)
    assert "is built without CUDA" in cuda(box, compiled=False)


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


def test_a_device_that_torch_has_never_heard_of() -> None:
    """Another accelerator's name is told as what it is."""
    assert diagnosis.why_not("npu", torch_with()) == "torch 2.8.0 has no npu support"


def test_a_machine_without_a_card(box: Box) -> None:
    """No card on the bus and no device file: there is nothing to install."""
    assert xpu(box).endswith("the PCI bus has no Intel GPU, and there is no /dev/dri/renderD*")
    assert cuda(box).endswith("the PCI bus has no NVIDIA GPU, and there is no /dev/nvidia0")


def test_another_vendors_card_is_no_card(box: Box) -> None:
    """An NVIDIA card is no XPU, and the other way round."""
    box.card(NVIDIA, "nvidia")
    assert "has no Intel GPU" in xpu(box)
    box.card(INTEL, "xe", "0000:04:00.0")
    assert "NVIDIA's kernel driver is not loaded" in cuda(box)


def test_a_card_that_no_driver_has_taken(box: Box) -> None:
    """The kernel knows the card's address and nothing more: its driver is missing."""
    box.card(INTEL)
    assert "no kernel driver is bound to the Intel GPU at 0000:03:00.0: load i915 or xe" in xpu(box)


def test_a_container_that_was_not_given_the_card(box: Box) -> None:
    """The driver is loaded outside, and inside there is no device file."""
    box.card(INTEL, "xe")
    box.card(NVIDIA, "nvidia", "0000:04:00.0")
    box.driver_loaded()
    assert "the kernel driver xe is loaded and there is no /dev/dri/renderD*: a container needs --device" in xpu(box)
    assert "there is no /dev/nvidia0: a container needs --gpus all" in cuda(box)


def test_a_device_file_that_may_not_be_opened(box: Box) -> None:
    """Who is not in the file's group is told the group and the command."""
    box.card(INTEL, "xe")
    box.node("dri/renderD128")
    box.closed = {"renderD128"}
    told = xpu(box)
    assert "/dev/dri/renderD128 cannot be opened by" in told
    assert "usermod -aG" in told
    box.node("dri/renderD129")
    assert "may not be opened" not in xpu(box)  # one that opens is enough


@pytest.mark.parametrize(
    ("library", "package"), [("libze_loader.so.1", "libze1"), ("libze_intel_gpu.so.1", "libze-intel-gpu1")]
)
def test_a_level_zero_library_that_is_not_installed(box: Box, library: str, package: str) -> None:
    """Each library is named, with the package that brings it."""
    box.card(INTEL, "i915")
    box.node("dri/renderD128")
    box.libraries.remove(library)
    told = xpu(box)
    assert f"{library} is not installed" in told
    assert f"install {package}" in told


def test_a_card_without_its_cuda_library(box: Box) -> None:
    box.node("nvidia0")
    box.libraries.remove("libcuda.so.1")
    assert "libcuda.so.1 is not installed" in cuda(box)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("1", "ZE_AFFINITY_MASK=1 names a card that is not there: 1 Intel GPU found"),
        ("", "ZE_AFFINITY_MASK is empty, which hides every card"),
        ("0", "no card that torch can use with ZE_AFFINITY_MASK=0"),
    ],
)
def test_a_variable_that_hides_the_card(box: Box, value: str, told: str) -> None:
    """A mask that leaves nothing is the reason; one that leaves the card is not, and is only told."""
    box.card(INTEL, "xe")
    box.node("dri/renderD128")
    box.variables["ZE_AFFINITY_MASK"] = value
    assert told in xpu(box)


def test_a_driver_that_is_too_old_is_told_in_torchs_words(box: Box) -> None:
    """Torch knows the versions: its first line is repeated, whatever our own pin says."""
    box.node("nvidia0")
    box.card(NVIDIA, "nvidia")
    box.variables["CUDA_VISIBLE_DEVICES"] = "0"
    told = cuda(box, says="The NVIDIA driver on your system is too old (found version 11040).\nPlease update.")
    assert "(torch says: The NVIDIA driver on your system is too old (found version 11040).)" in told


def test_the_last_sentence_is_of_cards_that_torch_does_not_take(box: Box) -> None:
    """Where nothing is missing, the card is not one of those that torch knows."""
    box.card(INTEL, "i915")
    box.node("dri/renderD128")
    told = xpu(box, says="No XPU devices are available.")
    assert "(torch says: No XPU devices are available.)" in told
    assert "it takes Arc, Flex, Max, Battlemage" in told


def test_windows_linux_has_another_device_file(box: Box) -> None:
    """In WSL the card is /dev/dxg: that there is no /dev/dri is no reason there."""
    box.node("dxg")
    assert "no card that torch can use" in xpu(box)
