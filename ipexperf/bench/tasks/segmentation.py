"""Which pixels belong to what is looked for: cross entropy and dice, and how what is found overlaps with the truth."""

from __future__ import annotations

from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.lazy import torch
from ipexperf.bench.subjects import Split, Task, Tensors


class Segmentation(Task):
    name = "segmentation"
    metric = "intersection over union"
    least = 1 / 5
    """Overlap is a hard score: of a third of a road that was found, with as much beside it, it is a quarter."""

    def loss(self, outputs: Tensors, targets: Tensors) -> Any:
        """Cross entropy sees each pixel, dice the whole batch: else a road that is 3 % of it counts for nothing."""
        logits, truth = outputs[0].float(), targets[0]
        chance = logits.sigmoid()
        # One pixel more on both sides: a batch without any road must not divide by nothing.
        dice = (2 * (chance * truth).sum() + 1) / (chance.sum() + truth.sum() + 1)
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, truth) + 1 - dice

    def agreement(self, outputs: Tensors, known: Tensors) -> float:
        return float(((outputs[0] > 0) == (known[0] > 0)).double().mean())

    def score(self, outputs: Tensors, targets: Tensors) -> float:
        """Over all pixels of all examples: a tile without any road has no overlap of its own."""
        return overlap(outputs[0] > 0, targets[0] > 0)

    def trivial(self, split: Split) -> float:
        """All of it, or nothing: the better of the two."""
        truth = split.test.targets[0] > 0
        return max(overlap(torch.full_like(truth, answer), truth) for answer in (True, False))


def overlap(found: Any, truth: Any) -> float:
    """Intersection over union; where there is nothing and nothing was found, all of it was right."""
    union = int((found | truth).sum())
    return int((found & truth).sum()) / union if union else 1.0


registry.tasks.add("segmentation", Segmentation())
