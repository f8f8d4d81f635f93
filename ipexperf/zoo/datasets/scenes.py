"""Signs with real handwritten digits, placed at random on real photographs, so that each box is known exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ipexperf.bench import registry
from ipexperf.ext import Dataset, Examples, Split, register, torch
from ipexperf.zoo.datasets.digits import FILE, PIXELS

PHOTOGRAPHS = ("china.jpg", "flower.jpg")
CLASSES = 4
"""Number of different digits on signs, from 0 on."""
TRAIN, TEST = 512, 64
SEED = 0
CROP = 128
"""Side of a scene in pixels of a photograph. It is scaled to the model's size."""
LEFT = 0.6
"""Share of each photograph, from the left, for training scenes. The rest is for held-out ones."""
MOST = 3
"""Largest number of signs in a scene; there is at least one."""
SIDES = (0.22, 0.46)
"""Smallest and largest side of a sign, relative to the scene's."""


class Scenes(Dataset):
    name = "scenes"
    licence = "digits CC BY 4.0, photographs CC BY 2.0"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        return str(FILE.parent), None

    def read(self, path: str, size: int) -> Split:
        """Return scenes. Held-out ones use other digits and other parts of the photographs than training."""
        digits = registry.datasets.get("digits").read(str(Path(path) / FILE.name), PIXELS)
        photographs = [_photograph(Path(path) / name) for name in PHOTOGRAPHS]
        left = [photograph[:, :, : int(LEFT * photograph.shape[2])] for photograph in photographs]
        right = [photograph[:, :, int(LEFT * photograph.shape[2]) :] for photograph in photographs]
        return Split(
            _Painter(left, digits.train, size, SEED).scenes(TRAIN),
            _Painter(right, digits.test, size, SEED).scenes(TEST),
        )


def _photograph(path: Path) -> Any:
    """Return its pixels from -1 to 1: channels, height, width."""
    from PIL import Image

    with Image.open(path) as opened:
        pixels = torch.frombuffer(bytearray(opened.tobytes()), dtype=torch.uint8)
        return pixels.view(opened.height, opened.width, 3).permute(2, 0, 1).float() / 127.5 - 1


class _Painter:
    """Paints scenes from photographs and digits. Equal seeds give equal scenes."""

    def __init__(self, photographs: list[Any], digits: Examples, size: int, seed: int) -> None:
        shown = digits.part(digits.targets[0] < CLASSES)
        self.photographs, self.size = photographs, size
        self.digits, self.labels = shown.inputs[0], shown.targets[0]
        self.generator = torch.Generator().manual_seed(seed)

    def scenes(self, count: int) -> Examples:
        """Return scenes with boxes in pixels (left, top, right, bottom) and labels. A label of -1 is no sign."""
        painted = [self._scene() for _ in range(count)]
        images, boxes, labels = (torch.stack(parts) for parts in zip(*painted, strict=True))
        return Examples((images,), (boxes, labels))

    def _scene(self) -> tuple[Any, Any, Any]:
        image = self._background()
        boxes, labels = torch.zeros(MOST, 4), torch.full((MOST,), -1)
        # Each sign has its own quarter of the scene, so none hides another.
        quarters = torch.randperm(4, generator=self.generator)[: self._between(1, MOST)].tolist()
        for index, quarter in enumerate(quarters):
            half = self.size // 2
            height, width = self._side(), self._side()
            top = quarter // 2 * half + self._between(0, half - height)
            left = quarter % 2 * half + self._between(0, half - width)
            number = self._between(0, len(self.labels) - 1)
            sign = _scaled(self.digits[number], height, width)
            image[:, top : top + height, left : left + width] = sign
            boxes[index] = torch.tensor([left, top, left + width, top + height])
            labels[index] = self.labels[number]
        return image, boxes, labels

    def _background(self) -> Any:
        photograph = self.photographs[self._between(0, len(self.photographs) - 1)]
        _, height, width = photograph.shape
        top, left = self._between(0, height - CROP), self._between(0, width - CROP)
        return _scaled(photograph[:, top : top + CROP, left : left + CROP], self.size, self.size)

    def _side(self) -> int:
        return self._between(*(int(share * self.size) for share in SIDES))

    def _between(self, least: int, most: int) -> int:
        return int(torch.randint(least, most + 1, (), generator=self.generator))


def _scaled(image: Any, height: int, width: int) -> Any:
    return torch.nn.functional.interpolate(image[None], size=(height, width), mode="bilinear", align_corners=False)[0]


register(Scenes())
