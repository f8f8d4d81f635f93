"""One-stage detection as in SSD: class scores and offsets for each of many anchor boxes."""

from __future__ import annotations

import math
from typing import Any

from ipexperf.ext import Tensors, register, torch
from ipexperf.zoo.tasks._boxes import Boxes, Detections, overlap, suppressed

SIZE = 64
HARD = 3
"""Ratio of background boxes, those with the largest loss, to boxes around objects in training."""
LEAST_SURE = 0.05
"""Minimum score of a box."""
MOST_BOXES = 100
"""Maximum number of boxes of an example, best first."""
CROWDED = 0.45
"""Boxes that overlap a better one of their class by more than this are suppressed."""
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


class Detection(Boxes):
    """Outputs are offsets, examples x boxes x 4, and scores, examples x boxes x classes; class 0 is background."""

    name = "detection"

    def loss(self, outputs: Tensors, targets: Tensors) -> Any:
        """Return the loss of offsets for boxes around objects, and of classes for these and the hardest others."""
        offsets, scores = (value.float() for value in outputs)
        target_offsets, classes = assigned(anchors(SIZE).to(offsets), *targets)
        is_object = classes > 0
        loss_of_offsets = torch.nn.functional.smooth_l1_loss(
            offsets[is_object], target_offsets[is_object], reduction="sum"
        )
        loss_of_class = torch.nn.functional.cross_entropy(scores.transpose(1, 2), classes, reduction="none")
        rank = loss_of_class.detach().masked_fill(is_object, 0).argsort(1, descending=True).argsort(1)
        learned = is_object | (rank < HARD * is_object.sum(1, keepdim=True))
        return (loss_of_offsets + loss_of_class[learned].sum()) / is_object.sum().clamp(min=1)

    def compared(self, outputs: Tensors) -> Any:
        """Return offsets and scores, before any decision."""
        return outputs

    def detections(self, outputs: Tensors) -> list[Detections]:
        """Return boxes and classes after suppression, computed on the CPU outside the network."""
        offsets, scores = outputs
        boxes = decoded(offsets, anchors(SIZE).to(offsets))
        return [_surest(*parts) for parts in zip(boxes, scores.softmax(2)[:, :, 1:], strict=True)]


def assigned(anchor_boxes: Any, boxes: Any, labels: Any) -> tuple[Any, Any]:
    """Return the target offsets and class of each anchor of each example. Class 0 is background."""
    shares = torch.stack([overlap(corners(anchor_boxes), boxes_of_example) for boxes_of_example in boxes])
    shares = shares.masked_fill((labels < 0)[:, None], -1)
    share, index_of_object = shares.max(2)
    # Each object gets at least one box: the one with the largest overlap.
    example, object_index = (labels >= 0).nonzero(as_tuple=True)
    best = shares.argmax(1)[example, object_index]
    share[example, best], index_of_object[example, best] = 1.0, object_index
    target_boxes = boxes.gather(1, index_of_object[..., None].expand(-1, -1, 4))
    classes = (labels.gather(1, index_of_object) + 1).masked_fill(share < LEAST, 0)
    return encoded(target_boxes, anchor_boxes), classes


def _surest(boxes: Any, scores: Any) -> Detections:
    """Return the boxes of one example after filtering and suppression."""
    row, label = (scores >= LEAST_SURE).nonzero(as_tuple=True)
    sure = scores[row, label]
    survivors = suppressed(boxes[row], sure, label, CROWDED)[:MOST_BOXES]
    return Detections(boxes[row][survivors], sure[survivors], label[survivors])


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


register(Detection())
