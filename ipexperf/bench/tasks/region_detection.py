"""Detection in two stages: the network itself decides which boxes it found, and makes its own loss."""

from __future__ import annotations

from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.lazy import torch
from ipexperf.bench.subjects import Tensors, tensors
from ipexperf.bench.tasks._boxes import Found
from ipexperf.bench.tasks._detection import Boxes


class RegionDetection(Boxes):
    """The answers are boxes, how sure each is, and labels, the surest first; a label of -1 is no box.

    In training the network is given the targets as well, and answers with its losses.
    """

    name = "region_detection"

    def learn(self, network: Any, inputs: Tensors, targets: Tensors) -> tuple[Any, Tensors]:
        losses = tensors(network(*inputs, *targets))
        return self.loss(losses, targets), losses

    def loss(self, outputs: Tensors, targets: Tensors) -> Any:
        """All losses of the network's own together."""
        del targets
        return torch.stack([value.float() for value in outputs]).sum()

    def compared(self, outputs: Tensors) -> Any:
        """How sure the boxes are: which of two equally sure boxes stands first is luck."""
        return outputs[1]

    def found(self, outputs: Tensors) -> list[Found]:
        return [
            Found(boxes[labels >= 0], scores[labels >= 0], labels[labels >= 0])
            for boxes, scores, labels in zip(*outputs, strict=True)
        ]


registry.tasks.add("region_detection", RegionDetection())
