"""Number plates that are made, not photographed: three letters and four digits in the font that Pillow brings.

Pillow draws each character once; the plates are put together, turned, coloured, blurred and made noisy by torch, all of
them at a time. So each process makes its own in the time of an import, and there is no file that could be an old one.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.lazy import torch
from ipexperf.bench.subjects import Dataset, Examples, Split
from ipexperf.errors import WorkerError

SHA256 = "69853909b940023570964e29cffe30da95aea8de3627736b5cd15ab30143169f"
"""Of the font."""
CHARACTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""In the targets each has its place here and one more: 0 is the blank of CTC."""
LETTERS, DIGITS = 3, 4
TRAIN, TEST = 4096, 512
PART = 512
"""Plates that are made at a time: they are drawn large, and made small in the end."""
SEED = 0
HEIGHT = 24
FINE = 2
"""Plates are drawn so many times as large as they are seen."""
CELL = (23, FINE * HEIGHT)
INK = (19, 32)
"""Width and height, in pixels, of the room for a character, and of the largest character in it."""
MARGIN, GAP = 8, 11
"""At both ends, and between letters and digits."""
TILT, SHIFT = 0.07, 0.04
"""The most that a plate is turned, in radians, and moved, as a share of half its size."""
NOISE = 0.08


class Plates(Dataset):
    name = "plates"
    licence = "generated; of the font, in Pillow: no rights reserved"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        """The font is part of the code that loads it."""
        del folder
        spec = importlib.util.find_spec("PIL")
        if spec is None or spec.origin is None:
            return None, "the plates are drawn with Pillow, which is not installed: pip install pillow"
        path = Path(spec.origin).parent / "ImageFont.py"
        return (str(path), None) if path.is_file() else (None, f"Pillow has no fonts at {path}")

    def read(self, path: str, size: int) -> Split:
        """The same plates for everybody: what is drawn depends on the seed and the font alone."""
        del path  # the worker's own Pillow draws, and the sum says that its font is the one
        generator = torch.Generator().manual_seed(SEED)
        glyphs = _glyphs()
        parts = [_plates(PART, size, glyphs, generator) for _ in range((TRAIN + TEST) // PART)]
        images, texts = (torch.cat(values) for values in zip(*parts, strict=True))
        examples = Examples((images.float() / 127.5 - 1,), (texts,))
        return Split(examples.part(slice(TRAIN)), examples.part(slice(TRAIN, None)))


def text(target: Any) -> str:
    """A target as people write it."""
    return "".join(CHARACTERS[number - 1] for number in target.tolist())


def _glyphs() -> Any:
    """Each character as ink, from 0 to 1, in a cell of its own."""
    from PIL import ImageFont

    font = ImageFont.load_default(64)
    # Without FreeType Pillow has another font, which is none of a file.
    found = hashlib.sha256(getattr(font, "font_bytes", b"")).hexdigest()
    if found != SHA256:
        raise WorkerError("error", f"the font of the Pillow installed is not the known one: sha256 {found}")
    return torch.stack([_glyph(character, font) for character in CHARACTERS]) / 255


def _glyph(character: str, font: Any) -> Any:
    """One character, as high as all others, and narrowed where it would not fit in."""
    from PIL import Image, ImageDraw

    drawn = Image.new("L", (96, 96))
    ImageDraw.Draw(drawn).text((16, 8), character, fill=255, font=font)
    drawn = drawn.crop(drawn.getbbox())
    width = min(INK[0], round(drawn.width * INK[1] / drawn.height))
    cell = Image.new("L", CELL)
    cell.paste(drawn.resize((width, INK[1])), ((CELL[0] - width) // 2, (CELL[1] - INK[1]) // 2))
    return torch.frombuffer(bytearray(cell.tobytes()), dtype=torch.uint8).view(CELL[1], CELL[0])


def _plates(count: int, width: int, glyphs: Any, generator: Any) -> tuple[Any, Any]:
    """Some plates as a camera has them, in 8 bits, and what is on them."""
    letters = torch.randint(10, len(CHARACTERS), (count, LETTERS), generator=generator)
    digits = torch.randint(10, (count, DIGITS), generator=generator)
    numbers = torch.cat((letters, digits), 1)
    ink = _turned(_written(glyphs[numbers]), width, generator)

    def chosen(low: float, high: float, *, colours: int = 1) -> Any:
        return low + (high - low) * torch.rand(count, colours, 1, 1, generator=generator)

    ground, paint = chosen(0.55, 1, colours=3), chosen(0, 0.35, colours=3)
    sharp = ground + (paint - ground) * ink
    blurred = torch.nn.functional.avg_pool2d(sharp, 3, stride=1, padding=1, count_include_pad=False)
    image = torch.lerp(sharp, blurred, chosen(0, 1))
    image += chosen(0, NOISE) * (2 * torch.rand(image.shape, generator=generator) - 1)
    return (image.clamp(0, 1) * 255).round().byte(), numbers + 1


def _written(cells: Any) -> Any:
    """The characters of each plate in a row, with margins and the gap."""
    line = cells.permute(0, 2, 1, 3).flatten(2)
    middle = LETTERS * CELL[0]
    left = torch.nn.functional.pad(line[:, :, :middle], (MARGIN, GAP))
    right = torch.nn.functional.pad(line[:, :, middle:], (0, MARGIN))
    return torch.cat((left, right), 2)[:, None]


def _turned(written: Any, width: int, generator: Any) -> Any:
    """Each plate turned, moved and made smaller by a little of its own, at the size at which it is seen."""
    count = len(written)
    turn, across, down, times = (2 * torch.rand(4, count, generator=generator) - 1).unbind()
    angle, times = TILT * turn, 1.1 + 0.05 * times
    # torch counts from -1 to 1 along both sides, however long they are.
    sine, cosine, ratio = times * angle.sin(), times * angle.cos(), width / HEIGHT
    rows = (cosine, -sine / ratio, SHIFT * across), (sine * ratio, cosine, SHIFT * down)
    where = torch.stack([torch.stack(row, 1) for row in rows], 1)
    grid = torch.nn.functional.affine_grid(where, (count, 1, FINE * HEIGHT, FINE * width), align_corners=False)
    return torch.nn.functional.avg_pool2d(torch.nn.functional.grid_sample(written, grid, align_corners=False), FINE)


registry.datasets.add("plates", Plates())
