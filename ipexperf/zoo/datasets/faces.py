"""Crops with and without a face from real photographs in scikit-image's package.

Only its files are read; the worker's interpreter does not need scikit-image.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ipexperf.ext import Dataset, Examples, Split, register, torch
from ipexperf.zoo.datasets import _package
from ipexperf.zoo.datasets.photographs import SHA256

PHOTOGRAPHS = {name: SHA256[name] for name in ("astronaut.png", "camera.png", "chelsea.png", "coffee.png")}
FACES = {"astronaut.png": (175, 69, 273, 169), "camera.png": (195, 117, 272, 196)}
"""Left, top, right and bottom of the face in each photograph, if any."""
TRAIN, TEST = 256, 128
SEEDS = (0, 1)
OFF = 0.08
"""Largest offset of a crop's sides from those of its face, relative to these."""
SIDES = (40, 200)
"""Smallest and largest side of a crop without a face, in pixels."""


class Faces(Dataset):
    name = "faces"
    licence = "public domain or CC0, as scikit-image says of each"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        del folder
        absent = "the faces come with scikit-image, which is not installed: see make data"
        return _package.find("skimage", "scikit-image", absent, "data", *(f"data/{name}" for name in PHOTOGRAPHS))

    def read(self, path: str, size: int) -> Split:
        """Return crops of which every second has a face. Training and held-out parts use the same photographs."""
        photographs = {
            # Normalised like the networks' training data.
            name: (_package.image(Path(path) / name, sha256).contiguous() - 127.5) / 128
            for name, sha256 in PHOTOGRAPHS.items()
        }
        return Split(
            *(_crops(photographs, count, size, seed) for count, seed in zip((TRAIN, TEST), SEEDS, strict=True))
        )


def _crops(photographs: dict[str, Any], count: int, size: int, seed: int) -> Examples:
    generator = torch.Generator().manual_seed(seed)
    empty = [name for name in photographs if name not in FACES]
    images, labels = [], torch.arange(count) % 2
    for index, label in enumerate(labels.tolist()):
        name = list(FACES if label else empty)[index // 2 % 2]
        photograph = photographs[name]
        box = _around(FACES[name], generator) if label else _anywhere(photograph.shape, generator)
        left, top, right, bottom = box
        crop = photograph[None, :, max(0, top) : bottom, max(0, left) : right]
        images.append(torch.nn.functional.interpolate(crop, size=(size, size), mode="area")[0])
    return Examples((torch.stack(images),), (labels,))


def _around(face: tuple[int, int, int, int], generator: Any) -> list[int]:
    """Return a box near a face, like the proposals of a preceding network."""
    left, top, right, bottom = face
    sides = torch.tensor([right - left, bottom - top] * 2)
    off = (2 * torch.rand(4, generator=generator) - 1) * OFF * sides
    return [int(value) for value in (torch.tensor(face) + off).round()]


def _anywhere(shape: Any, generator: Any) -> list[int]:
    """Return a random square in a photograph."""
    _, height, width = shape
    side = int(torch.randint(SIDES[0], SIDES[1] + 1, (), generator=generator))
    left, top = (int(torch.randint(0, most - side + 1, (), generator=generator)) for most in (width, height))
    return [left, top, left + side, top + side]


register(Faces())
