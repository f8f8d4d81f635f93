"""Detection in one stage: class scores and offsets for each of many known boxes, as SSD answers them."""

from __future__ import annotations

from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.lazy import torch
from ipexperf.bench.subjects import Tensors
from ipexperf.bench.tasks import _anchors
from ipexperf.bench.tasks._boxes import Found, overlap, uncrowded
from ipexperf.bench.tasks._detection import Boxes

SIZE = 64
HARD = 3
"""So many boxes around nothing, those that a network is most wrong about, are learned from for each around a thing."""
LEAST_SURE = 0.05
"""A box that is less sure is not looked at."""
MOST_FOUND = 100
"""So many boxes of an example are looked at, the surest."""
CROWDED = 0.45
"""A box that overlaps a surer one of its class by more than this is around the same thing."""


class Detection(Boxes):
    """The answers are offsets, examples x boxes x 4, and scores, examples x boxes x classes, the first for nothing."""

    name = "detection"

    def loss(self, outputs: Tensors, targets: Tensors) -> Any:
        """Offsets of the boxes that are to find a thing, and classes of these and of the hardest of the others."""
        offsets, scores = (value.float() for value in outputs)
        wanted, classes = assigned(_anchors.anchors(SIZE).to(offsets), *targets)
        thing = classes > 0
        places = torch.nn.functional.smooth_l1_loss(offsets[thing], wanted[thing], reduction="sum")
        each = torch.nn.functional.cross_entropy(scores.transpose(1, 2), classes, reduction="none")
        rank = each.detach().masked_fill(thing, 0).argsort(1, descending=True).argsort(1)
        learned = thing | (rank < HARD * thing.sum(1, keepdim=True))
        return (places + each[learned].sum()) / thing.sum().clamp(min=1)

    def compared(self, outputs: Tensors) -> Any:
        """Offsets and scores alike, before anything is decided."""
        return torch.cat(outputs, 2)

    def found(self, outputs: Tensors) -> list[Found]:
        """Boxes and classes with what is around the same thing left out: on the CPU, in no network."""
        offsets, scores = outputs
        boxes = _anchors.decoded(offsets, _anchors.anchors(SIZE).to(offsets))
        return [_surest(*parts) for parts in zip(boxes, scores.softmax(2)[:, :, 1:], strict=True)]


def assigned(known: Any, boxes: Any, labels: Any) -> tuple[Any, Any]:
    """For each known box of each example the offsets that it should have, and the class: 0 where it finds nothing."""
    shares = torch.stack([overlap(_anchors.corners(known), its) for its in boxes])
    shares = shares.masked_fill((labels < 0)[:, None], -1)
    share, which = shares.max(2)
    # Each thing has one box at least: that which overlaps it most.
    example, thing = (labels >= 0).nonzero(as_tuple=True)
    best = shares.argmax(1)[example, thing]
    share[example, best], which[example, best] = 1.0, thing
    wanted = boxes.gather(1, which[..., None].expand(-1, -1, 4))
    classes = (labels.gather(1, which) + 1).masked_fill(share < _anchors.LEAST, 0)
    return _anchors.encoded(wanted, known), classes


def _surest(boxes: Any, scores: Any) -> Found:
    """The boxes of one example that say something, without those that a surer one says already."""
    row, label = (scores >= LEAST_SURE).nonzero(as_tuple=True)
    sure = scores[row, label]
    kept = uncrowded(boxes[row], sure, label, CROWDED)[:MOST_FOUND]
    return Found(boxes[row][kept], sure[kept], label[kept])


registry.tasks.add("detection", Detection())
