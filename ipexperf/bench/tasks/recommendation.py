"""Would this person like that? One number for each pair: binary cross entropy, and how well the numbers order them."""

from __future__ import annotations

from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.lazy import torch
from ipexperf.bench.subjects import Split, Task, Tensors


class Recommendation(Task):
    name = "recommendation"
    metric = "area under the ROC curve"
    inputs = 2
    unit = "embeddings of {0}"

    def loss(self, outputs: Tensors, targets: Tensors) -> Any:
        return torch.nn.functional.binary_cross_entropy_with_logits(outputs[0], targets[0])

    def agreement(self, outputs: Tensors, known: Tensors) -> float:
        """A number over 0 says yes."""
        return float(((outputs[0] > 0) == (known[0] > 0)).double().mean())

    def score(self, outputs: Tensors, targets: Tensors) -> float:
        """The chance that of one that is liked and one that is not the former has the larger number; equal is half."""
        likes = targets[0] > 0
        values, places, counts = outputs[0].double().unique(return_inverse=True, return_counts=True)
        # The middle of the places that equal numbers share in the order of all.
        ranks = counts.cumsum(0).double() - (counts.double() - 1) / 2
        liked, disliked = int(likes.sum()), int((~likes).sum())
        wins = float(ranks[places[likes]].sum()) - liked * (liked + 1) / 2
        return wins / (liked * disliked) if len(values) and liked and disliked else float("nan")

    def trivial(self, split: Split) -> float:
        """Whoever gives everything the same number orders nothing."""
        del split
        return 0.5


registry.tasks.add("recommendation", Recommendation())
