"""Recommendation: a number for each pair of person and item. Binary cross entropy, and the area under the ROC curve."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import Split, Task, Tensors, register, torch


class Recommendation(Task):
    name = "recommendation"
    products = True
    metric = "area under the ROC curve"
    inputs = 2
    unit = "embeddings of {0}"

    def loss(self, outputs: Tensors, targets: Tensors) -> Any:
        return torch.nn.functional.binary_cross_entropy_with_logits(outputs[0], targets[0])

    def agreement(self, outputs: Tensors, reference: Tensors) -> float:
        """Return the share of equal decisions. A number over 0 means yes."""
        return float(((outputs[0] > 0) == (reference[0] > 0)).double().mean())

    def score(self, outputs: Tensors, targets: Tensors) -> float:
        """Return the probability that a liked item has a larger number than another one. Ties count half."""
        likes = targets[0] > 0
        _, places, counts = outputs[0].double().unique(return_inverse=True, return_counts=True)
        # Equal numbers get the mean of their ranks.
        ranks = counts.cumsum(0).double() - (counts.double() - 1) / 2
        liked, disliked = int(likes.sum()), int((~likes).sum())
        wins = float(ranks[places[likes]].sum()) - liked * (liked + 1) / 2
        return wins / (liked * disliked) if liked and disliked else float("nan")

    def trivial(self, split: Split) -> float:
        """Return 0.5: equal numbers give no order."""
        return 0.5


register(Recommendation())
