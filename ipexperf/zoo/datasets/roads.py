"""A satellite image with the mask of its roads, from the package solaris: 3 % of the pixels are road.

Only the package's two data files are read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ipexperf.ext import Dataset, Examples, Split, WorkerError, register, torch
from ipexperf.zoo.datasets import _package

IMAGE, MASK = "road_mask_input.tif", "sample_road_raster_mask.tif"
SHA256 = {
    IMAGE: "7c561b4a96190dfacc324a03667301935e8868bddacf0496dd7d369224f0ea87",
    MASK: "d545452e2d92a9b46f38375eeadc600345da16a021739a58bf8f5425b5371a09",
}
TRAINED = 780
"""Columns from the left for training: three fifths. The rest is held out."""
MEAN, DEVIATION = 563.0, 227.0
"""Mean and standard deviation of the training part. There is one band of 11 bits."""
GROUND = 256
"""Minimum side of a tile in pixels of the image."""


class Roads(Dataset):
    name = "roads"
    licence = "Apache-2.0, in solaris"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        del folder
        absent = "the roads come with solaris, which is not installed: see make data"
        return _package.find("solaris", "solaris", absent, f"data/{IMAGE}", f"data/{MASK}")

    def read(self, path: str, size: int) -> Split:
        """Return square tiles: of the left part in 8 orientations, of the right part unchanged."""
        times = max(1, GROUND // size)
        files = {name: Path(path).with_name(name) for name in (IMAGE, MASK)}
        image, mask = (_package.image(file, SHA256[name], colours=False) for name, file in files.items())
        layers = torch.cat(((image.float() - MEAN) / DEVIATION, (mask > 0).float()))
        left, right = (_reduced(part, times) for part in (layers[:, :, :TRAINED], layers[:, :, TRAINED:]))
        return Split(_examples(_eightfold(tiles(left, size, covering=True))), _examples(tiles(right, size)))


def tiles(part: Any, size: int, *, covering: bool = False) -> Any:
    """Return evenly spaced squares: either covering everything with overlaps, or without overlap."""
    if min(part.shape[1:]) < size:
        raise WorkerError("error", f"tiles of {size} x {size} are larger than {' x '.join(map(str, part.shape[1:]))}")
    downs, acrosses = (_begins(length, size, covering=covering) for length in part.shape[1:])
    return torch.stack([part[:, down : down + size, across : across + size] for down in downs for across in acrosses])


def _reduced(part: Any, times: int) -> Any:
    """Reduce the size by a factor. A pixel that is half road counts as road."""
    grey, road = torch.nn.functional.avg_pool2d(part, times)
    return torch.stack((grey, (road >= 0.5).float()))


def _begins(length: int, size: int, *, covering: bool) -> list[int]:
    count = -(-length // size) if covering else length // size
    return [round(number * (length - size) / max(1, count - 1)) for number in range(count)]


def _eightfold(squares: Any) -> Any:
    """Return each tile and its mirror image in four rotations: roads have no direction."""
    both = torch.cat((squares, squares.flip(3)))
    return torch.cat([both.rot90(turn, (2, 3)) for turn in range(4)])


def _examples(squares: Any) -> Examples:
    """Return grey values in three channels, and the mask."""
    return Examples((squares[:, :1].repeat(1, 3, 1, 1),), (squares[:, 1:].contiguous(),))


register(Roads())
