"""Crops with and without a face from real photographs in scikit-image's package.

Only its files are read; the worker's interpreter does not need scikit-image.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ipexperf.ext import Dataset, Examples, Split, register, torch, torchvision
from ipexperf.zoo.datasets import _package

PHOTOGRAPHS = {
    "astronaut.png": "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5",
    "camera.png": "b0793d2adda0fa6ae899c03989482bff9a42d3d5690fc7e3648f2795d730c23a",
    "chelsea.png": "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb",
    "coffee.png": "cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7",
}
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
        photographs = {name: _photograph(Path(path) / name, sha256) for name, sha256 in PHOTOGRAPHS.items()}
        return Split(
            *(_crops(photographs, count, size, seed) for count, seed in zip((TRAIN, TEST), SEEDS, strict=True))
        )


def _photograph(path: Path, sha256: str) -> Any:
    """Return a photograph in three channels, normalised like the networks' training data."""
    packed = path.read_bytes()
    _package.check(packed, sha256, f"{path} is not the known photograph")
    read = torchvision.io.ImageReadMode.RGB
    return (torchvision.io.decode_png(torch.frombuffer(bytearray(packed), dtype=torch.uint8), read) - 127.5) / 128


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
