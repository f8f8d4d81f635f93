"""The common base of detection tasks: how boxes are scored."""

from __future__ import annotations

from abc import abstractmethod

from ipexperf.ext import Split, Task, Tensors
from ipexperf.zoo.tasks import _boxes
from ipexperf.zoo.tasks._boxes import Detections

SURE = 0.5
"""Minimum score of a box that counts as a decision. Mean precision includes lower ones."""


class Boxes(Task):
    """Object detection, independent of the form of a network's outputs."""

    metric = "mean average precision of boxes that overlap by half"

    @abstractmethod
    def detections(self, outputs: Tensors) -> list[Detections]:
        """Return the detections of each example, on the CPU."""

    def agreement(self, outputs: Tensors, reference: Tensors) -> float:
        detected, expected = ([x.surer(SURE) for x in self.detections(part)] for part in (outputs, reference))
        return _boxes.agreement(detected, expected)

    def score(self, outputs: Tensors, targets: Tensors) -> float:
        return _boxes.mean_precision(self.detections(outputs), *targets)

    def trivial(self, split: Split) -> float:
        """Return 0: the same boxes in every scene detect next to nothing."""
        del split
        return 0.0
