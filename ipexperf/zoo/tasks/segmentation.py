"""Segmentation: cross entropy and dice loss, and intersection over union."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import Split, Task, Tensors, register, torch


class Segmentation(Task):
    name = "segmentation"
    metric = "intersection over union"
    least = 1 / 5
    """Overlap is a strict score: finding a third of a road with as much outside of it scores a quarter."""

    def loss(self, outputs: Tensors, targets: Tensors) -> Any:
        """Return cross entropy per pixel plus dice over the batch: else roads, a few pixels, would not matter."""
        logits, truth = outputs[0].float(), targets[0]
        chance = logits.sigmoid()
        # Add a pixel on both sides, so that a batch without roads does not divide by 0.
        dice = (2 * (chance * truth).sum() + 1) / (chance.sum() + truth.sum() + 1)
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, truth) + 1 - dice

    def agreement(self, outputs: Tensors, reference: Tensors) -> float:
        return float(((outputs[0] > 0) == (reference[0] > 0)).double().mean())

    def score(self, outputs: Tensors, targets: Tensors) -> float:
        """Return the overlap over all pixels of all examples: a tile without roads has none of its own."""
        return overlap(outputs[0] > 0, targets[0] > 0)

    def trivial(self, split: Split) -> float:
        """Return the better score of all pixels and of none."""
        truth = split.test.targets[0] > 0
        return max(overlap(torch.full_like(truth, answer), truth) for answer in (True, False))


def overlap(mask: Any, truth: Any) -> float:
    """Return intersection over union, or 1 if both masks are empty."""
    union = int((mask | truth).sum())
    return int((mask & truth).sum()) / union if union else 1.0


register(Segmentation())
