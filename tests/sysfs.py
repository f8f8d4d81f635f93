"""A card as the kernel shows it in /sys, under a root of a test's own."""

from pathlib import Path

TILES = {"xe": "device/tile{}", "i915": "gt/gt{}"}


def add_card(root: Path, number: int, address: str, vendor: str = "0x8086", tiles: int = 1, driver: str = "xe") -> Path:
    device, card = root / "sys/devices" / address, root / f"sys/class/drm/card{number}"
    device.mkdir(parents=True)
    (device / "vendor").write_text(vendor)
    card.mkdir(parents=True)
    (card / "device").symlink_to(device)
    for tile in range(tiles):
        (card / TILES[driver].format(tile)).mkdir(parents=True)
    return card
