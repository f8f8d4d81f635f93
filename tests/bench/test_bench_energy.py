"""Counters of energy: files as the kernel writes them, and a library like NVIDIA's. No machine here has a counter."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import pytest

from ipexperf.bench.devices._telemetry import Telemetry
from ipexperf.bench.machine import energy
from ipexperf.bench.machine.energy import EnergyCounter, EnergyPart, Meter

RANGE = 262_143_328_850
ADDRESS, OTHER = "0000:03:00.0", "0000:8c:00.0"


class Files:
    """A machine made of files."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: object) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
        return file

    def zone(self, number: str, name: str, used: int = 0) -> Path:
        self.write(f"{energy.POWERCAP}/intel-rapl:{number}/name", name)
        self.write(f"{energy.POWERCAP}/intel-rapl:{number}/max_energy_range_uj", RANGE)
        return self.write(f"{energy.POWERCAP}/intel-rapl:{number}/energy_uj", used)

    def core(self, number: int, package: int) -> None:
        self.write(f"sys/devices/system/cpu/cpu{number}/topology/physical_package_id", package)

    def card(self, number: int, address: str, vendor: str = energy.INTEL) -> str:
        """Add a card. Return its folder of sensors."""
        device = self.root / "sys/devices" / address
        device.mkdir(parents=True)
        (device / "vendor").write_text(f"{vendor}\n")
        card = self.root / f"sys/class/drm/card{number}"
        card.mkdir(parents=True)
        (card / "device").symlink_to(device)
        self.write(f"sys/class/drm/card{number}-DP-1/status", "connected")
        return f"sys/devices/{address}/hwmon"

    def sensor(self, folder: str, number: int, name: str, **counts: int) -> None:
        self.write(f"{folder}/hwmon{number}/name", name)
        for energy_name, count in counts.items():
            self.write(f"{folder}/hwmon{number}/{energy_name}_input", count)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


class Clock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def used(counter: EnergyCounter | str, change: Any, seconds: float = 60.0) -> float | None:
    """The joules of a stretch so long, in which the change is made."""
    assert isinstance(counter, EnergyCounter), counter
    clock = Clock()
    meter = Meter(counter, clock)
    meter.start()
    change()
    clock.now += seconds
    return meter.stop()


def named(counter: EnergyCounter | str) -> str:
    assert isinstance(counter, EnergyCounter), counter
    return counter.name


@pytest.fixture
def two(files: Files) -> Files:
    """Two packages of two cores each, with what RAPL has on a server, and once more through memory-mapped registers."""
    for core in range(4):
        files.core(core, core // 2)
    for package in range(2):
        files.zone(str(package), f"package-{package}", 1_000_000)
        files.zone(f"{package}:0", "core", 5_000_000)
        files.zone(f"{package}:1", "dram", 2_000_000)
    files.zone("2", "psys", 9_000_000)
    files.write(f"{energy.POWERCAP}/intel-rapl-mmio:0/name", "package-0")
    files.write(f"{energy.POWERCAP}/intel-rapl-mmio:0/energy_uj", 1)
    return files


def test_a_package_and_its_memory_are_added_up(two: Files) -> None:
    """Its cores are in its own count, and all of it in that of the whole machine."""
    counter = energy.packages((0, 1), two.root)

    def work() -> None:
        for number, name, count in (
            ("0", "package-0", 4_000_000),
            ("0:0", "core", 7_000_000),
            ("0:1", "dram", 2_500_000),
            ("1", "package-1", 99_000_000),
            ("2", "psys", 99_000_000),
        ):
            two.zone(number, name, count)

    assert used(counter, work) == pytest.approx(3.5)
    assert named(counter) == "RAPL of package-0, package-0/dram"


@pytest.mark.parametrize(
    ("cores", "names"),
    [
        ((2,), "package-1, package-1/dram"),
        ((1, 2), "package-0, package-0/dram, package-1, package-1/dram"),
        ((77,), "package-0, package-0/dram, package-1, package-1/dram"),
    ],
)
def test_the_packages_are_those_of_the_cores(two: Files, cores: tuple[int, ...], names: str) -> None:
    """Or all of them, where the kernel does not say whose the cores are."""
    counter = energy.packages(cores, two.root)
    assert named(counter) == f"RAPL of {names}"


def test_a_package_of_several_dies_has_a_count_for_each(files: Files) -> None:
    files.core(0, 1)
    for number, name in enumerate(("package-0-die-0", "package-1-die-0", "package-1-die-1")):
        files.zone(str(number), name)
    counter = energy.packages((0,), files.root)
    assert named(counter) == "RAPL of package-1-die-0, package-1-die-1"


def test_a_count_that_starts_again_from_zero_is_carried_on(two: Files) -> None:
    """The largest count comes before 0: from one below it to 2 are 4."""
    part = EnergyPart(lambda: 0, 100)
    assert part.used(99, 2) == 4
    two.zone("0", "package-0", RANGE - 999_999)

    def wrap() -> None:
        two.zone("0", "package-0", 1_000_000)
        two.zone("0:1", "dram", 3_000_000)

    assert used(energy.packages((0,), two.root), wrap) == pytest.approx(2.0 + 1.0)


@pytest.mark.parametrize(
    ("before", "now", "limit"),
    [(5, 5, 0), (5, 4, 0), (5, 5, 100), (60, 59, 100), (50, 0, 100), (0, 0, 0)],
)
def test_a_count_that_stands_still_or_runs_backwards_is_unknown(before: int, now: int, limit: int) -> None:
    """It is not 0. A count that falls without having been near its end was reset."""
    assert EnergyPart(lambda: 0, limit).used(before, now) is None


def test_one_part_that_stands_still_leaves_no_sum(two: Files) -> None:
    """A package without its memory is another quantity."""
    assert used(energy.packages((0,), two.root), lambda: two.zone("0", "package-0", 4_000_000)) is None


@pytest.mark.parametrize(("updates", "joules"), [(energy.UPDATES, 3.0), (energy.UPDATES - 1, None)])
def test_a_stretch_of_few_updates_tells_nothing(updates: int, joules: float | None) -> None:
    counts = iter((1, 4))
    counter = EnergyCounter("a card", 0.5, [EnergyPart(lambda: next(counts))], unit=1)
    assert Meter(counter).seconds == 5.0
    assert used(counter, lambda: None, updates * 0.5) == joules


@pytest.mark.parametrize(
    ("flags", "reason"),
    [("fpu hypervisor avx2", "a virtual machine has none"), ("fpu avx2", "/sys/class/powercap has no package")],
)
def test_a_machine_without_a_counter_says_so(files: Files, flags: str, reason: str) -> None:
    """A powercap zone of another kind is no package."""
    files.write("proc/cpuinfo", f"model name\t: a hypervisor's\nflags\t\t: {flags}")
    files.zone("0", "psys")
    assert energy.packages((0,), files.root) == f"no counter: {reason}"


def test_a_counter_that_only_root_may_read_says_so(two: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """As every kernel since 5.10 has it. These tests may run as root, who may read whatever is there."""
    opened = os.open

    def refuse(path: Any, *more: Any) -> int:
        if Path(path).name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return opened(path, *more)

    monkeypatch.setattr(energy.os, "open", refuse)
    path = two.root / energy.POWERCAP / "intel-rapl:0/energy_uj"
    assert energy.packages((0,), two.root) == f"no counter: only root may read {path}"


@pytest.mark.parametrize("driver", ["i915", "xe"])
@pytest.mark.parametrize("count", ["energy1", "energy2"])
def test_the_only_card_of_intel_is_the_one_that_is_used(files: Files, driver: str, count: str) -> None:
    """Its own sensor, not that of a tile; that of the whole card where it has one. A foreign card is beside it."""
    folder = files.card(1, ADDRESS)
    files.card(0, OTHER, "0x10de")
    files.sensor(folder, 2, f"{driver}_gt0", energy1=1)
    files.sensor(folder, 3, driver, **{"energy2": 0, count: 1_000_000})
    counter = energy.intel_card(None, files.root)
    assert used(counter, lambda: files.sensor(folder, 3, driver, **{count: 3_500_000})) == pytest.approx(2.5)
    assert named(counter) == f"hwmon of {ADDRESS}"


def test_of_several_cards_the_kernel_must_tell_which_is_used(files: Files) -> None:
    """By the accounts of this process: the engines of one card worked for it."""
    for number, address in enumerate((ADDRESS, OTHER)):
        files.sensor(files.card(number, address), number, "xe", energy1=7)
    reason = "no counter: 2 Intel cards, and the kernel does not tell which of them is used"
    telemetry = Telemetry(files.root)
    assert energy.intel_card(telemetry.used(), files.root) == reason
    for descriptor, (address, cycles) in enumerate(((ADDRESS, 0), (OTHER, 5))):
        text = f"drm-pdev:\t{address}\ndrm-client-id:\t{descriptor}\ndrm-cycles-ccs:\t{cycles}"
        files.write(f"proc/self/fdinfo/{descriptor}", f"{text}\ndrm-total-cycles-ccs:\t9")
    counter = energy.intel_card(telemetry.used(), files.root)
    assert named(counter) == f"hwmon of {OTHER}"


@pytest.mark.parametrize(
    ("address", "reason"),
    [(None, f"the driver of {ADDRESS} offers none"), (OTHER, f"{OTHER} is no Intel card")],
)
def test_a_card_without_a_counter_says_so(files: Files, address: str | None, reason: str) -> None:
    """An integrated one has a sensor of another driver, or none."""
    none = "no counter: 0 Intel cards, and the kernel does not tell which of them is used"
    assert energy.intel_card(None, files.root) == none
    files.sensor(files.card(0, ADDRESS), 0, "acpitz", energy1=7)
    assert energy.intel_card(address, files.root) == f"no counter: {reason}"


class Nvml:
    """A library like NVIDIA's, with cards that count millijoules, by their UUIDs."""

    def __init__(self, **errors: int) -> None:
        self.cards = {b"GPU-7f": 1_000, b"GPU-80": 50_000}
        self.errors = errors
        """What its functions answer: a number that says what went wrong, or 0."""

    def nvmlInit_v2(self) -> int:  # noqa: N802 - the names are the library's
        return self.errors.get("init", 0)

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802
        count._obj.value = len(self.cards)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:  # noqa: N802
        handle._obj.value = index + 1
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, handle: Any) -> int:  # noqa: N802
        if uuid not in self.cards:
            return 6
        handle._obj.value = list(self.cards).index(uuid) + 1
        return 0

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: ctypes.c_void_p, count: Any) -> int:  # noqa: N802
        assert handle.value is not None
        count._obj.value = list(self.cards.values())[handle.value - 1]
        return self.errors.get("read", 0)


def test_a_card_of_nvidia_is_found_by_its_uuid() -> None:
    nvml = Nvml()
    counter = energy.nvidia_card("GPU-80", nvml)
    assert used(counter, lambda: nvml.cards.update({b"GPU-7f": 9_000, b"GPU-80": 51_500})) == pytest.approx(1.5)
    assert named(counter) == "NVML of GPU-80"


def test_without_a_uuid_there_must_be_one_card() -> None:
    """An older torch tells none."""
    nvml = Nvml()
    reason = "no counter: 2 NVIDIA cards, and torch does not tell which of them is used"
    assert energy.nvidia_card(None, nvml) == reason
    del nvml.cards[b"GPU-7f"]
    assert used(energy.nvidia_card(None, nvml), lambda: nvml.cards.update({b"GPU-80": 50_250})) == 0.25


@pytest.mark.parametrize(
    ("uuid", "errors", "reason"),
    [
        ("GPU-80", {"init": 9}, "nvmlInit_v2 failed with 9"),
        ("GPU-80", {"read": 3}, "this card has no counter"),
        ("GPU-80", {"read": 4}, "no permission"),
        ("MIG-1", {}, "it knows no such card"),
    ],
)
def test_what_nvidias_library_refuses_is_said(uuid: str, errors: dict[str, int], reason: str) -> None:
    assert energy.nvidia_card(uuid, Nvml(**errors)) == f"no counter: {reason}"


def test_without_nvidias_library_there_is_no_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(energy.ctypes, "CDLL", absent)
    assert energy.nvidia_card("GPU-80") == f"no counter: {energy.NVML}: cannot open shared object file"
