"""Generated number plates: three letters and four digits in Pillow's built-in font.

Pillow draws each character once. torch assembles, rotates, colours, blurs and adds noise to all plates at once. Each
process generates its own plates in the time of an import, so there is no file that could be outdated.
"""

from __future__ import annotations

import hashlib
from typing import Any

from ipexperf.ext import Dataset, Examples, Split, WorkerError, register, torch

SHA256 = "69853909b940023570964e29cffe30da95aea8de3627736b5cd15ab30143169f"
"""SHA-256 of the font."""
CHARACTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Characters. In targets each has its index plus 1: 0 is the blank of CTC."""
LETTERS, DIGITS = 3, 4
TRAIN, TEST = 4096, 512
PART = 512
"""Plates per batch of generation: they are drawn large and scaled down at the end."""
SEED = 0
HEIGHT = 24
FINE = 2
"""Plates are drawn this many times larger than their final size."""
CELL = (23, FINE * HEIGHT)
INK = (19, 32)
"""Width and height of a character cell, and of the largest character in it, in pixels."""
MARGIN, GAP = 8, 11
"""Margin at both ends, and gap between letters and digits, in pixels."""
TILT, SHIFT = 0.07, 0.04
"""Largest rotation in radians, and largest shift relative to half the size."""
NOISE = 0.08


class Plates(Dataset):
    name = "plates"
    licence = "generated; of the font, in Pillow: no rights reserved"

    def read(self, path: str, size: int) -> Split:
        """Generate the plates. They depend only on the seed and the font."""
        generator = torch.Generator().manual_seed(SEED)
        glyphs = _glyphs()
        parts = [_plates(PART, size, glyphs, generator) for _ in range((TRAIN + TEST) // PART)]
        images, texts = (torch.cat(values) for values in zip(*parts, strict=True))
        examples = Examples((images.float() / 127.5 - 1,), (texts,))
        return Split(examples.part(slice(TRAIN)), examples.part(slice(TRAIN, None)))


def text(target: Any) -> str:
    """Return a target as text."""
    return "".join(CHARACTERS[number - 1] for number in target.tolist())


def _glyphs() -> Any:
    """Return each character as ink from 0 to 1, in a cell."""
    from PIL import ImageFont

    font = ImageFont.load_default(64)
    # Without FreeType Pillow has another font, which is not a file.
    data = getattr(font, "font_bytes", b"")
    if (digest := hashlib.sha256(data).hexdigest()) != SHA256:
        raise WorkerError("error", f"the font of the Pillow installed is not the known one: sha256 {digest}")
    return torch.stack([_glyph(character, font) for character in CHARACTERS]) / 255


def _glyph(character: str, font: Any) -> Any:
    """Draw one character at the common height, narrowed if it does not fit."""
    from PIL import Image, ImageDraw

    drawn = Image.new("L", (96, 96))
    ImageDraw.Draw(drawn).text((16, 8), character, fill=255, font=font)
    drawn = drawn.crop(drawn.getbbox())
    width = min(INK[0], round(drawn.width * INK[1] / drawn.height))
    cell = Image.new("L", CELL)
    cell.paste(drawn.resize((width, INK[1])), ((CELL[0] - width) // 2, (CELL[1] - INK[1]) // 2))
    return torch.frombuffer(bytearray(cell.tobytes()), dtype=torch.uint8).view(CELL[1], CELL[0])


def _plates(count: int, width: int, glyphs: Any, generator: Any) -> tuple[Any, Any]:
    """Return some plates as 8-bit images, and their texts."""
    letters = torch.randint(10, len(CHARACTERS), (count, LETTERS), generator=generator)
    digits = torch.randint(10, (count, DIGITS), generator=generator)
    numbers = torch.cat((letters, digits), 1)
    ink = _turned(_written(glyphs[numbers]), width, generator)

    def random_between(low: float, high: float, *, colours: int = 1) -> Any:
        return low + (high - low) * torch.rand(count, colours, 1, 1, generator=generator)

    ground, paint = random_between(0.55, 1, colours=3), random_between(0, 0.35, colours=3)
    sharp = ground + (paint - ground) * ink
    blurred = torch.nn.functional.avg_pool2d(sharp, 3, stride=1, padding=1, count_include_pad=False)
    image = torch.lerp(sharp, blurred, random_between(0, 1))
    image += random_between(0, NOISE) * (2 * torch.rand(image.shape, generator=generator) - 1)
    return (image.clamp(0, 1) * 255).round().byte(), numbers + 1


def _written(cells: Any) -> Any:
    """Place the characters of each plate in a row, with margins and the gap."""
    line = cells.permute(0, 2, 1, 3).flatten(2)
    middle = LETTERS * CELL[0]
    left = torch.nn.functional.pad(line[:, :, :middle], (MARGIN, GAP))
    right = torch.nn.functional.pad(line[:, :, middle:], (0, MARGIN))
    return torch.cat((left, right), 2)[:, None]


def _turned(written: Any, width: int, generator: Any) -> Any:
    """Rotate, shift and scale each plate at random, at its final size."""
    count = len(written)
    turn, across, down, times = (2 * torch.rand(4, count, generator=generator) - 1).unbind()
    angle, times = TILT * turn, 1.1 + 0.05 * times
    # torch's coordinates go from -1 to 1 along both sides, whatever their length.
    sine, cosine, ratio = times * angle.sin(), times * angle.cos(), width / HEIGHT
    rows = (cosine, -sine / ratio, SHIFT * across), (sine * ratio, cosine, SHIFT * down)
    transforms = torch.stack([torch.stack(row, 1) for row in rows], 1)
    grid = torch.nn.functional.affine_grid(transforms, (count, 1, FINE * HEIGHT, FINE * width), align_corners=False)
    return torch.nn.functional.avg_pool2d(torch.nn.functional.grid_sample(written, grid, align_corners=False), FINE)


register(Plates())
