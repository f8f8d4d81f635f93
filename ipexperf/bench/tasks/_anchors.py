"""The boxes that a detector of one stage starts from: of several shapes around each point of each of its maps."""

from __future__ import annotations

import math
from typing import Any

from ipexperf.bench.lazy import torch

MAPS = (8, 4, 2)
"""How many points each map has in each direction."""
SHAPES = ((2.0,), (2.0, 3.0), (2.0,))
"""The proportions of the boxes at each map, lying and upright; two squares are there besides."""
SIDES = (0.25, 0.4, 0.6, 0.8)
"""How long a side is at each map, as a share of the image's; the second square lies between it and the next."""
COUNTS = tuple(2 + 2 * len(shapes) for shapes in SHAPES)
"""How many boxes are around each point of each map."""
SPREAD = (0.1, 0.2)
"""What a network answers is an offset of the middle or of the logarithm of the sides, in these units."""
LEAST = 0.5
"""A box that overlaps a thing by at least this share is to find it."""


def anchors(size: int) -> Any:
    """The middle, width and height of each box, in pixels of an image of this size."""
    rows = []
    for index, points in enumerate(MAPS):
        side, after = SIDES[index], SIDES[index + 1]
        shapes = [(side, side), (math.sqrt(side * after), math.sqrt(side * after))]
        for ratio in SHAPES[index]:
            long, short = side * math.sqrt(ratio), side / math.sqrt(ratio)
            shapes += [(long, short), (short, long)]
        middles = [(point + 0.5) / points for point in range(points)]
        rows += [(x, y, width, height) for y in middles for x in middles for width, height in shapes]
    return torch.tensor(rows) * size


def corners(middles: Any) -> Any:
    """Left, top, right and bottom of boxes given by their middle, width and height."""
    return torch.cat([middles[..., :2] - middles[..., 2:] / 2, middles[..., :2] + middles[..., 2:] / 2], -1)


def decoded(offsets: Any, known: Any) -> Any:
    """The boxes that a network means by its offsets."""
    middle = known[:, :2] + offsets[..., :2] * SPREAD[0] * known[:, 2:]
    return corners(torch.cat([middle, known[:, 2:] * (offsets[..., 2:] * SPREAD[1]).exp()], -1))


def encoded(boxes: Any, known: Any) -> Any:
    """The offsets that a network should answer for these boxes, one for each of the known ones."""
    sides = (boxes[..., 2:] - boxes[..., :2]).clamp(min=1e-3)
    middle = ((boxes[..., :2] + boxes[..., 2:]) / 2 - known[:, :2]) / known[:, 2:] / SPREAD[0]
    return torch.cat([middle, (sides / known[:, 2:]).log() / SPREAD[1]], -1)
