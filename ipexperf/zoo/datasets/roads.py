"""Ground from above with its roads: made from a seed, or read from a folder of the user."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ipexperf.ext import Dataset, Examples, Split, WorkerError, register, torch
from ipexperf.zoo.datasets import _folder

SEED = 0
GROUND = 128
"""Minimum side of what a made tile shows, in its pixels. Smaller tiles are reduced."""
TRAIN, HELD_OUT = 192, 48
"""Number of made tiles with that side. Of twice the side there are half as many."""
ROADS, ROOFS = 3, 12
"""Largest number of roads, and number of roofs, in a made tile with that side."""
HALF = (1.5, 3.5)
"""Smallest and largest half of the width of a road."""
CLEAR = 0.7
"""What the noise of the trees must exceed for a tree to stand there."""
FOLDER, IMAGE, MASK = "roads", "_sat", "_mask"
REAL_GROUND = 256
"""Minimum side of what a tile of a real image shows."""
PAIRS = 32
"""Number of images that are read. One of five is held out."""


class Roads(Dataset):
    """Winding roads on meadows, beside roofs of the same colours and partly below trees."""

    name = "roads"
    licence = "made here"
    real = "road_images"

    def read(self, path: str, size: int) -> Split:
        generator = torch.Generator().manual_seed(SEED)
        side = max(GROUND, size)
        counts = (count * GROUND // side for count in (TRAIN, HELD_OUT))
        return Split(*(_examples([_ground(side, generator) for _ in range(count)], size) for count in counts))


class RoadImages(Dataset):
    """Images and masks in the format of DeepGlobe's road extraction: `NAME_sat.jpg` and `NAME_mask.png`."""

    name = "road_images"
    licence = "that of your images"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        path, why_not = _folder.find(folder, "a set of road images", FOLDER, (), "put NAME_sat.jpg and NAME_mask.png")
        if path is None:
            return None, why_not
        images = _images(Path(path))
        if len(images) < 2:
            return None, f"{path} holds {len(images)} images NAME_sat.*, and at least 2 are needed"
        lacking = [mask.name for mask in map(_mask, images) if not mask.is_file()]
        return (None, f"{path} lacks {', '.join(lacking)}") if lacking else (path, None)

    def files(self, path: str) -> list[Path]:
        return [file for image in _images(Path(path)) for file in (image, _mask(image))]

    def read(self, path: str, size: int) -> Split:
        """Return tiles without overlap. Pillow reads the images; a pixel from half white on is road."""
        from PIL import Image

        def pixels(file: Path, mode: str) -> Any:
            with Image.open(file) as opened:
                data = bytearray(opened.convert(mode).tobytes())
                return torch.frombuffer(data, dtype=torch.uint8).view(opened.height, opened.width, -1).permute(2, 0, 1)

        tiles: tuple[list[Any], list[Any]] = [], []
        side = max(REAL_GROUND, size)
        for number, file in enumerate(_images(Path(path))):
            image, mask = pixels(file, "RGB").float() / 255, (pixels(_mask(file), "L") >= 128).float()
            if image.shape[1:] != mask.shape[1:] or min(image.shape[1:]) < side:
                sizes = [" x ".join(map(str, value.shape[1:])) for value in (image, mask)]
                text = f"{sizes[0]} and its mask {sizes[1]}: expected equal sizes of {side} x {side} or more"
                raise WorkerError("error", f"{file} is {text}")
            both = torch.cat((image, mask)).unfold(1, side, side).unfold(2, side, side)
            tiles[number % 5 == 1].extend(both.permute(1, 2, 0, 3, 4).flatten(0, 1))
        return Split(*(_examples(part, size) for part in tiles))


def _images(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{IMAGE}.*"))[:PAIRS]


def _mask(image: Path) -> Path:
    return image.with_name(f"{image.stem.removesuffix(IMAGE)}{MASK}.png")


def _examples(tiles: list[Any], size: int) -> Examples:
    """Return tiles of colours and mask at the model's size. A pixel that is half road counts as road."""
    layers = torch.nn.functional.adaptive_avg_pool2d(torch.stack(tiles), size)
    return Examples((layers[:, :3] * 2 - 1,), ((layers[:, 3:] >= 0.5).float(),))


def _ground(side: int, generator: Any) -> Any:
    """Make one tile: its colours from 0 to 1, and its mask."""

    def between(low: float, high: float, *shape: int) -> Any:
        return low + (high - low) * torch.rand(shape, generator=generator)

    def noise(points: int, channels: int) -> Any:
        coarse = between(0, 1, 1, channels, points, points)
        return torch.nn.functional.interpolate(coarse, size=(side, side), mode="bilinear", align_corners=False)[0]

    def whole(low: float, high: float) -> int:
        return int(between(low, high))

    colours = torch.tensor([0.45, 0.5, 0.3]).view(3, 1, 1) + 0.3 * (noise(6, 3) - 0.5) + 0.2 * (noise(24, 1) - 0.5)
    for _ in range(ROOFS * side**2 // GROUND**2):
        height, width, top, left = whole(4, 20), whole(4, 20), whole(0, side), whole(0, side)
        colours[:, top : top + height, left : left + width] = between(0.4, 0.8) + between(-0.05, 0.05, 3, 1, 1)
    down, across = torch.meshgrid(torch.arange(side) - side / 2, torch.arange(side) - side / 2, indexing="ij")
    mask = torch.zeros(side, side, dtype=torch.bool)
    for _ in range(whole(1, ROADS + 1)):
        turn, begin = between(0, 2 * math.pi, 2)
        along, beside = across * turn.cos() + down * turn.sin(), down * turn.cos() - across * turn.sin()
        bend = between(0, 10) * (along * between(0.02, 0.06) + begin).sin()
        road = (beside - side * between(-0.35, 0.35) - bend).abs() < between(*HALF)
        colours = torch.where(road, between(0.45, 0.75) + between(-0.05, 0.05, 3, 1, 1), colours)
        mask |= road
    trees = noise(16, 1) > CLEAR
    colours = torch.where(trees, between(0.1, 0.35, 3, 1, 1), colours)
    colours += 0.08 * (torch.randn(3, side, side, generator=generator))
    return torch.cat((colours.clamp(0, 1), mask[None].float()))


register(Roads())
register(RoadImages())
