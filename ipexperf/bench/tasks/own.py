"""A network of the user's own, of which nothing is known but what it answers: its answers are held to its own."""

from __future__ import annotations

import math
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.lazy import torch
from ipexperf.bench.subjects import Split, Task, Tensors
from ipexperf.errors import WorkerError

NEAR = 0.25
"""An answer that is off by so much of an answer's size is another one: int8 may be off by nearly so much on average."""


class Own(Task):
    name = "own"
    metric = "none"
    unit = "inputs of its own"
    scored = False

    def loss(self, outputs: Tensors, targets: Tensors) -> Any:
        del outputs, targets
        raise WorkerError("error", "a network that is named alone has nothing to learn from")

    def compared(self, outputs: Tensors) -> Any:
        """Every number that it answers."""
        numbers = [value.reshape(-1) for value in outputs if value.is_floating_point()]
        if not numbers:
            raise WorkerError("error", "the network answers with whole numbers alone, and fidelity needs others")
        return torch.cat(numbers)

    def agreement(self, outputs: Tensors, known: Tensors) -> float:
        """The share of examples all of whose answers are near the reference's."""
        near = [_near(found, expected) for found, expected in zip(outputs, known, strict=True)]
        return float(torch.stack(near).all(0).double().mean())

    def score(self, outputs: Tensors, targets: Tensors) -> float:
        del outputs, targets
        return math.nan

    def trivial(self, split: Split) -> float:
        del split
        return math.nan


def _near(found: Any, expected: Any) -> Any:
    """For each example, whether its numbers are near; whole numbers must be the same."""
    found, expected = found.reshape(len(found), -1), expected.reshape(len(expected), -1)
    if not expected.is_floating_point():
        return (found == expected).all(1)
    size = expected.pow(2).mean().sqrt()
    return (found - expected).pow(2).mean(1).sqrt() <= NEAR * size


registry.tasks.add("own", Own())
