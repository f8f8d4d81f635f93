"""The anchor boxes of a one-stage detector: several shapes around each point of each feature map."""

from __future__ import annotations

import math
from typing import Any

from ipexperf.ext import torch

MAPS = (8, 4, 2)
"""Number of points of each map in each direction."""
SHAPES = ((2.0,), (2.0, 3.0), (2.0,))
"""Aspect ratios of the boxes at each map, horizontal and vertical, besides two squares."""
SIDES = (0.25, 0.4, 0.6, 0.8)
"""Side length at each map relative to the image. The second square is between this and the next."""
COUNTS = tuple(2 + 2 * len(shapes) for shapes in SHAPES)
"""Number of boxes around each point of each map."""
SPREAD = (0.1, 0.2)
"""Units of a network's offsets: of the centre, and of the logarithm of the sides."""
LEAST = 0.5
"""A box that overlaps an object by at least this share should detect it."""


def anchors(size: int) -> Any:
    """Return centre, width and height of each box, in pixels of an image of this size."""
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
    """Convert centre, width and height to left, top, right and bottom."""
    return torch.cat([middles[..., :2] - middles[..., 2:] / 2, middles[..., :2] + middles[..., 2:] / 2], -1)


def decoded(offsets: Any, anchor_boxes: Any) -> Any:
    """Convert a network's offsets to boxes."""
    middle = anchor_boxes[:, :2] + offsets[..., :2] * SPREAD[0] * anchor_boxes[:, 2:]
    return corners(torch.cat([middle, anchor_boxes[:, 2:] * (offsets[..., 2:] * SPREAD[1]).exp()], -1))


def encoded(boxes: Any, anchor_boxes: Any) -> Any:
    """Return the offsets that a network should output for these boxes, one per anchor."""
    sides = (boxes[..., 2:] - boxes[..., :2]).clamp(min=1e-3)
    middle = ((boxes[..., :2] + boxes[..., 2:]) / 2 - anchor_boxes[:, :2]) / anchor_boxes[:, 2:] / SPREAD[0]
    return torch.cat([middle, (sides / anchor_boxes[:, 2:]).log() / SPREAD[1]], -1)
