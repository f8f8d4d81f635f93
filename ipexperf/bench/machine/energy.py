"""Counters of the energy that processors and cards have used: Intel's RAPL, hwmon of Intel cards, NVIDIA's NVML.

A function for each kind returns the counter, or why there is none. Virtual machines rarely have any.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipexperf.bench.clocks import perf_counter
from ipexperf.bench.machine import kernel_files

UPDATES = 10
"""A stretch of steps lasts at least this many updates of its counter. The first reading may be one update old, so up to
a tenth of the energy may belong to the time before."""
RAPL_UPDATE = 0.001
"""Seconds between two updates, as Intel documents them."""
CARD_UPDATE = 0.1
"""The same for a card. NVIDIA's take 20 to 100 ms, and Intel's are not documented."""
MICROJOULES, MILLIJOULES = 10**6, 10**3
POWERCAP = "sys/class/powercap"
INTEL = "0x8086"
NVML = "libnvidia-ml.so.1"
NVML_ERRORS = {3: "this card has no counter", 4: "no permission", 6: "it knows no such card"}


@dataclass(frozen=True, slots=True)
class EnergyPart:
    """One count of energy."""

    read: Callable[[], int]
    limit: int = 0
    """The largest count, after which it starts again from 0. 0: it never does."""

    def used(self, before: int, now: int) -> int | None:
        """Return the difference of two counts. None: it did not grow, so neither count can be trusted."""
        used = now - before
        if used < 0 and self.limit:
            used += self.limit + 1
            # No stretch of steps uses half of what a counter can hold: this was a reset.
            used = used if 2 * used <= self.limit else 0
        return used if used > 0 else None


@dataclass(frozen=True, slots=True)
class EnergyCounter:
    """The energy counter of a device: one part, or several that are added up."""

    name: str
    update: float
    """Seconds between two updates, at most."""
    parts: Sequence[EnergyPart]
    unit: int = MICROJOULES
    """Counts per joule."""


class Meter:
    """Measures the energy of stretches of steps."""

    def __init__(self, counter: EnergyCounter, clock: Callable[[], float] = perf_counter) -> None:
        self.seconds = UPDATES * counter.update
        """The least seconds of a stretch."""
        self._counter = counter
        self._clock = clock
        self._begin = 0.0
        self._before: list[int] | None = None

    def start(self) -> None:
        """Begin a stretch."""
        self._before = self._read()
        self._begin = self._clock()

    def stop(self) -> float | None:
        """Return the joules since `start`. None: the stretch was too short, or the counter cannot be trusted."""
        long_enough = self._clock() - self._begin >= self.seconds
        before, now = self._before, self._read()
        if before is None or now is None or not long_enough:
            return None
        used = [part.used(*counts) for part, *counts in zip(self._counter.parts, before, now, strict=True)]
        trusted = [count for count in used if count is not None]
        return sum(trusted) / self._counter.unit if len(trusted) == len(used) else None

    def _read(self) -> list[int] | None:
        try:
            return [part.read() for part in self._counter.parts]
        except OSError:
            return None


def packages(cores: Collection[int], root: Path = Path("/")) -> EnergyCounter | str:
    """Return the counter of the processor packages that have these cores, with their memory where it is counted."""
    zones = dict(_zones(root))
    all_packages = [name for name in zones if re.fullmatch(r"package-[^/]+", name)]
    if not all_packages:
        virtual = re.search(r"^flags\s*:.*\bhypervisor\b", kernel_files.text(root / "proc/cpuinfo") or "", re.MULTILINE)
        reason = "a virtual machine has none" if virtual else f"/{POWERCAP} has no package"
        return f"no counter: {reason}"
    folders = [root / f"sys/devices/system/cpu/cpu{core}/topology" for core in cores]
    package_ids = {kernel_files.text(folder / "physical_package_id") for folder in folders}
    packages_of_cores = [name for name in all_packages if name.split("-")[1] in package_ids] or all_packages
    # A package counts all zones below it, except its memory.
    names = [name for package in packages_of_cores for name in (package, f"{package}/dram") if name in zones]
    return _of_files(f"RAPL of {', '.join(names)}", RAPL_UPDATE, [zones[name] for name in names])


def _zones(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield the zones of RAPL: `package-0`, and those below it: `package-0/dram`."""
    for zone in sorted((root / POWERCAP).glob("intel-rapl:*")):
        if re.fullmatch(r"intel-rapl:\d+(:\d+)?", zone.name):
            parent = zone.name.rpartition(":")[0]
            above = "" if parent == "intel-rapl" else f"{kernel_files.text(zone.parent / parent / 'name') or ''}/"
            yield f"{above}{kernel_files.text(zone / 'name') or ''}", zone / "energy_uj"


def intel_cards(root: Path = Path("/")) -> dict[str, Path]:
    """Return Intel's cards by their PCI addresses."""
    cards = sorted(path for path in (root / "sys/class/drm").glob("card*") if re.fullmatch(r"card\d+", path.name))
    cards = [card for card in cards if kernel_files.text(card / "device/vendor") == INTEL]
    return {(card / "device").resolve().name: card for card in cards}


def intel_card(address: str | None = None, root: Path = Path("/")) -> EnergyCounter | str:
    """Return the counter of the card at this PCI address, or of the only card."""
    cards = intel_cards(root)
    if address is None and len(cards) != 1:
        return f"no counter: {len(cards)} Intel cards, and the kernel does not tell which of them is used"
    address = address or next(iter(cards))
    if address not in cards:
        return f"no counter: {address} is no Intel card"
    for sensor in sorted(cards[address].glob("device/hwmon/hwmon*")):
        # A tile has a sensor of its own, with a longer name.
        if kernel_files.text(sensor / "name") in ("i915", "xe"):
            # The first is that of the whole card, which some lack, and the second that of its package.
            for path in (sensor / "energy1_input", sensor / "energy2_input"):
                if path.exists():
                    return _of_files(f"hwmon of {address}", CARD_UPDATE, [path])
    return f"no counter: the driver of {address} offers none"


def nvidia_card(uuid: str | None = None, library: Any = None) -> EnergyCounter | str:
    """Return the counter of the card with this UUID, or of the only card."""
    handle, cards = ctypes.c_void_p(), ctypes.c_uint()

    def call(function: str, *arguments: Any) -> None:
        if code := getattr(nvml, function)(*arguments):
            raise OSError(NVML_ERRORS.get(code, f"{function} failed with {code}"))

    def read() -> int:
        count = ctypes.c_ulonglong()
        call("nvmlDeviceGetTotalEnergyConsumption", handle, ctypes.byref(count))
        return count.value

    try:
        nvml = library or ctypes.CDLL(NVML)
        call("nvmlInit_v2")
        if uuid is not None:
            call("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(handle))
        else:
            call("nvmlDeviceGetCount_v2", ctypes.byref(cards))
            if cards.value != 1:
                return f"no counter: {cards.value} NVIDIA cards, and torch does not tell which of them is used"
            call("nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(handle))
        read()
    except (OSError, AttributeError) as error:  # an AttributeError: an old library lacks a function
        return f"no counter: {error}"
    return EnergyCounter(f"NVML of {uuid or 'the only card'}", CARD_UPDATE, [EnergyPart(read)], MILLIJOULES)


def _of_files(name: str, update: float, paths: Sequence[Path]) -> EnergyCounter | str:
    """Return the counter that the kernel offers as these files of microjoules."""
    parts = []
    for path in paths:
        try:
            read = _reader(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            read()
        except PermissionError:
            return f"no counter: only root may read {path}"
        except OSError as error:
            return f"no counter: {path} cannot be read: {error}"
        limit = kernel_files.text(path.with_name("max_energy_range_uj")) or ""
        parts.append(EnergyPart(read, int(limit) if limit.isdigit() else 0))
    return EnergyCounter(name, update, parts)


def _reader(file: int) -> Callable[[], int]:
    """Return a reader of a file that stays open: opening it before each turn would slow the turn's first step."""
    return lambda: int(os.pread(file, 100, 0))
