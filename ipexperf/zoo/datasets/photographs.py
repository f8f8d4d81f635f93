"""Crops of photographs, most of them in scikit-image and two of ours. The class is the photograph of a crop.

The left part of each photograph is for training and the right part is held out, so that no pixel is in both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ipexperf.ext import Dataset, Examples, Split, WorkerError, register, torch
from ipexperf.zoo.datasets import _package

SHA256 = {
    "astronaut.png": "88431cd9653ccd539741b555fb0a46b61558b301d4110412b5bc28b5e3ea6cb5",
    "brick.png": "7966caf324f6ba843118d98f7a07746d22f6a343430add0233eca5f6eaaa8fcf",
    "camera.png": "b0793d2adda0fa6ae899c03989482bff9a42d3d5690fc7e3648f2795d730c23a",
    "cell.png": "8d23a7fb81f7cc877cd09f330357fc7f595651306e84e17252f6e0a1b3f61515",
    "chelsea.png": "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb",
    "china.jpg": "8378025ad2519d649d02e32bd98990db4ab572357d9f09841c2fbfbb4fefad29",
    "coffee.png": "cc02f8ca188b167c775a7101b5d767d1e71792cf762c33d6fa15a4599b5a8de7",
    "coins.png": "f8d773fc9cfa6f4d8e5942dc34d0a0788fcaed2a4fefbbed0aef5398d7ef4cba",
    "flower.jpg": "a77f6ec41e353afdf8bdff2ea981b2955535d8d83294f8cfa49cf4e423dd5638",
    "grass.png": "b6b6022426b38936c43a4ac09635cd78af074e90f42ffa8227ac8b7452d39f89",
    "gravel.png": "c48615b451bf1e606fbd72c0aa9f8cc0f068ab7111ef7d93bb9b0f2586440c12",
    "hubble_deep_field.jpg": "3a19c5dd8a927a9334bb1229a6d63711b1c0c767fb27e2286e7c84a3e2c2f5f4",
    "ihc.png": "f8dd1aa387ddd1f49d8ad13b50921b237df8e9b262606d258770687b0ef93cef",
    "moon.png": "78739619d11f7eb9c165bb5d2efd4772cee557812ec847532dbb1d92ef71f577",
    "retina.jpg": "38a07f36f27f095e818aea7b96d34202c05176d30253c66733f2e00379e9e0e6",
    "rocket.jpg": "c2dd0de7c538df8d111e479619b129464d0269d0ae5fd18ca91d33a7fdfea95c",
}
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
"""Mean and standard deviation of ImageNet, expected by networks trained on it."""
LEFT = 0.6
"""Share of a photograph's width for training."""
TRAIN, TEST = 24, 8
"""Number of crops of each photograph."""
LEAST = 96
"""Minimum side of a crop: smaller ones are not recognisable."""
SEED = 0


class Photographs(Dataset):
    name = "photographs"
    licence = "public domain, CC0 or CC BY 2.0, as the packages say of each"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        del folder
        root = _package.folder("skimage")
        if root is None:
            return None, "the photographs come with scikit-image, which is not installed: pip install 'ipexperf[data]'"
        folders = [str(root / "data"), str(_package.OURS)]
        missing = [name for name in SHA256 if not _file(name, folders)]
        if missing:
            return None, f"scikit-image has no {', '.join(missing)}"
        return os.pathsep.join(folders), None

    def files(self, path: str) -> list[Path]:
        return [file for name in SHA256 if (file := _file(name, path.split(os.pathsep)))]

    def read(self, path: str, size: int) -> Split:
        """Return the crops of all photographs in turns, always the same."""
        generator = torch.Generator().manual_seed(SEED)
        train: list[list[Any]] = []
        test: list[list[Any]] = []
        for image in _images(path.split(os.pathsep)):
            border = int(image.shape[-1] * LEFT)
            train.append([_crop(image[..., :border], size, generator) for _ in range(TRAIN)])
            test.append([_crop(image[..., border:], size, generator) for _ in range(TEST)])
        return Split(_examples(train), _examples(test))


def _file(name: str, folders: list[str]) -> Path | None:
    return next((file for folder in folders if (file := Path(folder) / name).is_file()), None)


def _images(folders: list[str]) -> Iterator[Any]:
    """Return the photographs as tensors, after verifying the files."""
    for name, sha256 in SHA256.items():
        file = _file(name, folders)
        if file is None:
            raise WorkerError("error", f"there is no {name} in {' or '.join(folders)}")
        yield _package.image(file, sha256).float() / 255


def _crop(image: Any, size: int, generator: Any) -> Any:
    """Return a random square of the image, scaled to the model's size and normalised."""
    height, width = image.shape[-2:]
    side = _between(LEAST, min(height, width), generator)
    top, left = _between(0, height - side, generator), _between(0, width - side, generator)
    square = image[None, :, top : top + side, left : left + side]
    scaled = torch.nn.functional.interpolate(
        square, size=(size, size), mode="bilinear", align_corners=False, antialias=True
    )
    return (scaled[0] - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(DEVIATION).view(3, 1, 1)


def _between(least: int, most: int, generator: Any) -> int:
    return int(torch.randint(least, most + 1, (1,), generator=generator))


def _examples(crops: list[list[Any]]) -> Examples:
    """Return crops of each photograph as examples. The class is the photograph's index."""
    inputs = torch.stack([crop for turn in zip(*crops, strict=True) for crop in turn])
    return Examples((inputs,), (torch.arange(len(crops)).repeat(len(crops[0])),))


register(Photographs())
