"""What the kernel tells of a card, beside what torch tells: its driver, its limits, and how it is attached."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ipexperf.bench.machine import kernel_files

INTEL = "0x8086"
DEVICES = "sys/bus/pci/devices"
_POWER = "hwmon/hwmon*/power1_max"
"""Microwatts, by the drivers i915 and xe."""
_BRIDGE = "0x0604"
"""How the class of a PCI bridge begins."""
_CLOCKS = ("tile*/gt*/freq*/{}_freq", "drm/card*/gt_{}_freq_mhz")
"""Megahertz, by xe and by i915: the files of the lowest and the highest clock (min, max)."""
_TILES = ("device/tile[0-9]*", "gt/gt[0-9]*")
"""The folders of a card's tiles, by xe and by i915."""


def kernel_driver(card: Path) -> str:
    """Return the name of the kernel driver that is bound to the card in this folder, or an empty text."""
    return (card / "driver").resolve().name if (card / "driver").exists() else ""


def described(address: str, root: Path = Path("/")) -> dict[str, Any]:
    """Return what the kernel tells of the card at this PCI address. It tells nothing that it does not know."""
    card = root / DEVICES / address
    driver = kernel_driver(card)
    power = [int(text) for path in card.glob(_POWER) if (text := kernel_files.text(path) or "").isdigit()]
    values = {
        "pci": address,
        "kernel_driver": driver or None,
        "kernel_driver_version": kernel_files.text(root / "sys/module" / driver / "version") if driver else None,
        "power_limit_watts": round(max(power) / 1e6) if power else None,
        "clock_limit_mhz": max((limit for _, _, limit in clocks(card)), default=None),
        "pci_lanes": kernel_files.text(_link(card) / "current_link_width"),
    }
    return {name: value for name, value in values.items() if value is not None}


def clocks(card: Path) -> list[tuple[Path, int, int]]:
    """Return the bounds of each clock of the card in this folder: the file of the lower one, and both in megahertz."""
    lower = [path for pattern in _CLOCKS for path in sorted(card.glob(pattern.format("min")))]
    pairs = [(path, path.with_name(path.name.replace("min", "max"))) for path in lower]
    read = [(path, kernel_files.text(path) or "", kernel_files.text(upper) or "") for path, upper in pairs]
    return [(path, int(low), int(high)) for path, low, high in read if low.isdigit() and high.isdigit()]


def _link(card: Path) -> Path:
    """Return the folder of the device that has the card's link to the host.

    Intel's cards hang in a switch of their own, two levels below the port in the slot: inside, one lane is told.
    """
    port = card.resolve().parents[1]
    inside = kernel_files.text(card / "vendor") == INTEL and (kernel_files.text(port / "class") or "").startswith(
        _BRIDGE
    )
    return port if inside else card


def intel_cards(root: Path = Path("/")) -> dict[str, Path]:
    """Return Intel's cards by their PCI addresses."""
    cards = sorted(path for path in (root / "sys/class/drm").glob("card*") if re.fullmatch(r"card\d+", path.name))
    cards = [card for card in cards if kernel_files.text(card / "device/vendor") == INTEL]
    return {(card / "device").resolve().name: card for card in cards}


def integrated(address: str) -> bool:
    """Return True if the processor's own graphics unit has this address."""
    return address.startswith("0000:00:02.")


def tiles(address: str, card: Path) -> int:
    """Return how many tiles a card has. Of a processor's own, i915 shows the media engine like a second one."""
    return 1 if integrated(address) else max(1, *(len(list(card.glob(pattern))) for pattern in _TILES))
