"""Boxes as rows of left, top, right, bottom: overlap, matching and precision, and the base of detection tasks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ipexperf.ext import Split, Task, Tensors, torch

SAME = 0.5
"""Boxes with at least this intersection over union are around the same object."""
SURE = 0.5
"""Minimum score of a box that counts as a decision. Mean precision includes lower ones."""


@dataclass(frozen=True, slots=True)
class Detections:
    """Detections in one example, highest score first: boxes, scores and labels."""

    boxes: Any
    scores: Any
    labels: Any

    def surer(self, threshold: float) -> Detections:
        """Return the detections with at least this score."""
        sure = self.scores >= threshold
        return Detections(self.boxes[sure], self.scores[sure], self.labels[sure])


def overlap(boxes: Any, others: Any) -> Any:
    """Return the intersection over union of each of N boxes with each of M others, as N x M."""
    begins = torch.maximum(boxes[:, None, :2], others[None, :, :2])
    ends = torch.minimum(boxes[:, None, 2:], others[None, :, 2:])
    shared = (ends - begins).clamp(min=0).prod(2)
    return shared / (_area(boxes)[:, None] + _area(others)[None] - shared).clamp(min=1e-9)


def _area(boxes: Any) -> Any:
    return (boxes[:, 2] - boxes[:, 0]).clamp(min=0) * (boxes[:, 3] - boxes[:, 1]).clamp(min=0)


def suppressed(boxes: Any, scores: Any, labels: Any, limit: float) -> Any:
    """Non-maximum suppression: return the indices of boxes that overlap no better one of their label by over `limit`.

    Written here because importing IPEX replaces torchvision's implementation.
    """
    order = scores.argsort(descending=True, stable=True)
    boxes, labels = boxes[order], labels[order]
    crowded = (overlap(boxes, boxes) > limit) & (labels[:, None] == labels[None])
    survivors = torch.ones(len(order), dtype=torch.bool)
    for index in range(len(order)):
        if survivors[index]:
            survivors[index + 1 :] &= ~crowded[index, index + 1 :]
    return order[survivors]


def matched(detected: Detections, boxes: Any, labels: Any) -> Any:
    """Return for each detection, best first, whether it matches an object that no better one matches."""
    hits = torch.zeros(len(detected.boxes), dtype=torch.bool)
    if len(boxes) == 0:
        return hits
    same = overlap(detected.boxes, boxes) * (detected.labels[:, None] == labels[None])
    for index in range(len(detected.boxes)):
        share, index_of_object = same[index].max(0)
        hits[index] = share >= SAME
        if hits[index]:
            same[:, index_of_object] = 0
    return hits


def agreement(detected: Sequence[Detections], reference: Sequence[Detections]) -> float:
    """Return the share of all boxes on both sides that the other side has too, with the same label."""
    hits = sum(
        int(matched(boxes, expected.boxes, expected.labels).sum())
        for boxes, expected in zip(detected, reference, strict=True)
    )
    total = sum(len(part.boxes) for part in (*detected, *reference))
    return 2 * hits / total if total else 1.0


def mean_precision(detected: Sequence[Detections], boxes: Any, labels: Any) -> float:
    """Return the mean average precision over classes. A label of -1 is no box."""
    classes = sorted({int(label) for label in labels.flatten() if label >= 0})
    return sum(_precision(detected, boxes, labels, label) for label in classes) / len(classes)


def _precision(detected: Sequence[Detections], boxes: Any, labels: Any, label: int) -> float:
    """Return the area under the interpolated precision-recall curve of one class."""
    scores, hits = [], []
    for example, its_boxes, its_labels in zip(detected, boxes, labels, strict=True):
        detected_ones, true_ones = example.labels == label, its_labels == label
        part = Detections(example.boxes[detected_ones], example.scores[detected_ones], example.labels[detected_ones])
        scores.append(part.scores)
        hits.append(matched(part, its_boxes[true_ones], its_labels[true_ones]))
    order = torch.cat(scores).argsort(descending=True, stable=True)
    right = torch.cat(hits)[order].double()
    if len(right) == 0:
        return 0.0
    precision = right.cumsum(0) / torch.arange(1, len(right) + 1)
    best = precision.flip(0).cummax(0).values.flip(0)
    return float((best * right).sum() / (labels == label).sum())


class Boxes(Task):
    """Object detection, independent of the form of a network's outputs."""

    metric = "mean average precision of boxes that overlap by half"

    @abstractmethod
    def detections(self, outputs: Tensors) -> list[Detections]:
        """Return the detections of each example, on the CPU."""

    def agreement(self, outputs: Tensors, reference: Tensors) -> float:
        detected, expected = ([boxes.surer(SURE) for boxes in self.detections(part)] for part in (outputs, reference))
        return agreement(detected, expected)

    def score(self, outputs: Tensors, targets: Tensors) -> float:
        return mean_precision(self.detections(outputs), *targets)

    def trivial(self, split: Split) -> float:
        """Return 0: the same boxes in every scene detect next to nothing."""
        return 0.0
