"""1,797 real handwritten digits of 8 x 8 pixels, which come with ipexperf."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from ipexperf.ext import Dataset, Examples, Split, register, torch

FILE = Path(__file__).parents[1] / "data" / "digits.csv.gz"
HELD_OUT = 360
PIXELS = 8
BRIGHTEST = 16.0


class Digits(Dataset):
    name = "digits"
    real = "cifar10"
    licence = "CC BY 4.0 (UCI, Alpaydin and Kaynak)"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        return str(FILE), None

    def read(self, path: str, size: int) -> Split:
        """Hold out every fifth digit. Scale pixels to the model's size, in three grey channels."""
        lines = gzip.decompress(Path(path).read_bytes()).decode().splitlines()
        rows = torch.tensor([[float(value) for value in line.split(",")] for line in lines])
        test = torch.arange(len(rows)) % 5 == 0
        return Split(_examples(rows[~test], size), _examples(rows[test], size))


def _examples(rows: Any, size: int) -> Examples:
    """Return images from lines of the file. The channels share memory: at 224 x 224 copies would take a gigabyte."""
    images = rows[:, :-1].reshape(-1, 1, PIXELS, PIXELS) / BRIGHTEST * 2 - 1
    images = torch.nn.functional.interpolate(images, size=(size, size), mode="bilinear", align_corners=False)
    return Examples((images.expand(-1, 3, -1, -1),), (rows[:, -1].long(),))


register(Digits())
