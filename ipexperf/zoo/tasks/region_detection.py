"""Two-stage detection: the network itself selects its boxes and computes its loss."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import Tensors, register, tensors, torch
from ipexperf.zoo.tasks._boxes import Boxes, Detections


class RegionDetection(Boxes):
    """Outputs are boxes, scores and labels, best first. A label of -1 is no box.

    In training the network also gets the targets, and returns its losses.
    """

    name = "region_detection"

    def learn(self, network: Any, inputs: Tensors, targets: Tensors) -> tuple[Any, Tensors]:
        losses = tensors(network(*inputs, *targets))
        return self.loss(losses, targets), losses

    def loss(self, outputs: Tensors, targets: Tensors) -> Any:
        """Return the sum of the network's losses."""
        return torch.stack([value.float() for value in outputs]).sum()

    def compared(self, outputs: Tensors) -> Any:
        """Return the scores only, because the order of boxes with equal scores is arbitrary."""
        return outputs[1]

    def detections(self, outputs: Tensors) -> list[Detections]:
        return [
            Detections(boxes[labels >= 0], scores[labels >= 0], labels[labels >= 0])
            for boxes, scores, labels in zip(*outputs, strict=True)
        ]


register(RegionDetection())
