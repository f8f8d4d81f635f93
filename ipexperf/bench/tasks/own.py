"""The user's own network. Correct answers are unknown, so its outputs are only compared with its float64 outputs."""

from __future__ import annotations

import math
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Split, Task, Tensors
from ipexperf.bench.lazy import torch
from ipexperf.errors import WorkerError

NEAR = 0.25
"""Relative error beyond which an output counts as different. int8 is nearly this far off on average."""


class Own(Task):
    name = "own"
    metric = "none"
    unit = "inputs of its own"
    scored = False
    near: float = NEAR

    def loss(self, outputs: Tensors, targets: Tensors) -> Any:
        del outputs, targets
        raise WorkerError("error", "a network given only by name has nothing to learn from")

    def compared(self, outputs: Tensors) -> Any:
        """Return all output numbers."""
        numbers = [value.reshape(-1) for value in outputs if value.is_floating_point()]
        if not numbers:
            raise WorkerError("error", "the network returns only whole numbers, which have no fidelity")
        return torch.cat(numbers)

    def agreement(self, outputs: Tensors, reference: Tensors) -> float:
        """Return the share of examples whose outputs are all near those of the reference."""
        near = [_near(output, expected, self.near) for output, expected in zip(outputs, reference, strict=True)]
        return float(torch.stack(near).all(0).double().mean())

    def score(self, outputs: Tensors, targets: Tensors) -> float:
        del outputs, targets
        return math.nan

    def trivial(self, split: Split) -> float:
        del split
        return math.nan


def _near(output: Any, expected: Any, most: float) -> Any:
    """Return for each example whether its relative error is at most this. Whole numbers must be equal."""
    output, expected = output.reshape(len(output), -1), expected.reshape(len(expected), -1)
    if not expected.is_floating_point():
        return (output == expected).all(1)
    size = expected.pow(2).mean().sqrt()
    return (output - expected).pow(2).mean(1).sqrt() <= most * size


registry.tasks.add("own", Own())
