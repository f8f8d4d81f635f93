"""One satellite's image with the mask of its roads, as the package solaris brings it: 3 pixels of 100 are road.

Only the package's two data files are read, which are TIFF without any packing: the worker needs nothing to do that.
"""

from __future__ import annotations

import hashlib
import importlib.util
import struct
from pathlib import Path
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.lazy import torch
from ipexperf.bench.subjects import Dataset, Examples, Split
from ipexperf.errors import WorkerError

IMAGE, MASK = "road_mask_input.tif", "sample_road_raster_mask.tif"
SHA256 = {
    IMAGE: "7c561b4a96190dfacc324a03667301935e8868bddacf0496dd7d369224f0ea87",
    MASK: "d545452e2d92a9b46f38375eeadc600345da16a021739a58bf8f5425b5371a09",
}
SIDE = 1300
"""Pixels of the image, down and across."""
TRAINED = 780
"""Columns from the left that are trained on: three fifths. The rest is held out."""
MEAN, DEVIATION = 563.0, 227.0
"""Of the grey values that are trained on: there is one band, of 11 bits."""
GROUND = 256
"""A tile shows at least so many of the image's pixels down and across: a smaller one has each of them for several."""
_OFFSETS, _COUNTS = 273, 279
"""The tags of a TIFF file that say where its strips of rows begin, and how many bytes each has."""


class Roads(Dataset):
    name = "roads"
    licence = "Apache-2.0, in solaris"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        del folder
        spec = importlib.util.find_spec("solaris")
        if spec is None or spec.origin is None:
            return None, "the roads come with solaris, which is not installed: see make data"
        path = Path(spec.origin).parent / "data"
        absent = [name for name in SHA256 if not (path / name).is_file()]
        return (None, f"solaris has no {' and no '.join(absent)} in {path}") if absent else (str(path / IMAGE), None)

    def read(self, path: str, size: int) -> Split:
        """Square tiles of the left part, each in 8 ways, and of the right part as they are."""
        times = max(1, GROUND // size)
        image = torch.frombuffer(_pixels(path), dtype=torch.int16).view(1, SIDE, SIDE)
        mask = torch.frombuffer(_pixels(str(Path(path).with_name(MASK))), dtype=torch.uint8).view(1, SIDE, SIDE)
        whole = torch.cat(((image.float() - MEAN) / DEVIATION, (mask > 0).float()))
        left, right = (_reduced(part, times) for part in (whole[:, :, :TRAINED], whole[:, :, TRAINED:]))
        return Split(_examples(_eightfold(tiles(left, size, covering=True))), _examples(tiles(right, size)))


def tiles(part: Any, size: int, *, covering: bool = False) -> Any:
    """Squares, evenly spread: those that cover all of it and may overlap, or else those that share no pixel."""
    if min(part.shape[1:]) < size:
        raise WorkerError("error", f"tiles of {size} x {size} are larger than {' x '.join(map(str, part.shape[1:]))}")
    downs, acrosses = (_begins(length, size, covering=covering) for length in part.shape[1:])
    return torch.stack([part[:, down : down + size, across : across + size] for down in downs for across in acrosses])


def _reduced(part: Any, times: int) -> Any:
    """So many times smaller. What is half road is road."""
    grey, road = torch.nn.functional.avg_pool2d(part, times)
    return torch.stack((grey, (road >= 0.5).float()))


def _begins(length: int, size: int, *, covering: bool) -> list[int]:
    count = -(-length // size) if covering else length // size
    return [round(number * (length - size) / max(1, count - 1)) for number in range(count)]


def _eightfold(found: Any) -> Any:
    """Each tile turned four times, and its mirror image as well: a road has no direction."""
    both = torch.cat((found, found.flip(3)))
    return torch.cat([both.rot90(turn, (2, 3)) for turn in range(4)])


def _examples(found: Any) -> Examples:
    """The grey values three times, for networks that want colours, and the mask."""
    return Examples((found[:, :1].repeat(1, 3, 1, 1),), (found[:, 1:].contiguous(),))


def _pixels(path: str) -> bytearray:
    """All rows of a known file, from the top. Its strips need not lie in order."""
    data = Path(path).read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256[Path(path).name]:
        raise WorkerError("error", f"{path} is not the known one: sha256 {found}")
    (begin,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, begin)
    entries = [struct.unpack_from("<HHII", data, begin + 2 + 12 * number) for number in range(count)]
    lists = {
        tag: struct.unpack_from(f"<{length}I", data, at) for tag, _, length, at in entries if tag in (_OFFSETS, _COUNTS)
    }
    return bytearray().join(data[at : at + length] for at, length in zip(lists[_OFFSETS], lists[_COUNTS], strict=True))


registry.datasets.add("roads", Roads())
