"""The tasks of the user's own networks. Correct answers are unknown: outputs are only compared with those in float64.

A network whose file has a loss and targets learns by them. Its quality remains unknown.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ipexperf.bench import outcome
from ipexperf.bench.lazy import torch
from ipexperf.bench.model import Split, Task, Tensors
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
        raise WorkerError("error", "a network given only by name has nothing to learn from")

    def compared(self, outputs: Tensors) -> Any:
        """Return all outputs that have a fidelity."""
        numbers = tuple(value for value in outputs if value.is_floating_point())
        if not numbers:
            raise WorkerError("error", "the network returns only whole numbers, which have no fidelity")
        return numbers

    def agreement(self, outputs: Tensors, reference: Tensors) -> float:
        """Return the share of examples whose outputs are all near those of the reference."""
        near = [_near(output, expected, self.near) for output, expected in zip(outputs, reference, strict=True)]
        return float(torch.stack(near).all(0).double().mean())

    def score(self, outputs: Tensors, targets: Tensors) -> float:
        return math.nan

    def trivial(self, split: Split) -> float:
        return math.nan


def _near(output: Any, expected: Any, limit: float) -> Any:
    """Return for each example whether its relative error is at most this. Whole numbers must be equal."""
    output, expected = output.reshape(len(output), -1), expected.reshape(len(expected), -1)
    if not expected.is_floating_point():
        return (output == expected).all(1)
    size = expected.pow(2).mean().sqrt()
    return (output - expected).pow(2).mean(1).sqrt() <= limit * size


class OwnTraining(Own):
    """Learns by the loss in the user's own file."""

    def __init__(self, name: str, find: Callable[[], Callable[[Any, Any], Any]]) -> None:
        """`find` returns the loss, a function of answers and targets. It is called in the worker."""
        self.name = name
        self._find = find
        self._loss: Callable[[Any, Any], Any] | None = None

    def loss(self, outputs: Tensors, targets: Tensors) -> Any:
        if self._loss is not None:
            return self._loss(_single_or_all(outputs), _single_or_all(targets))
        loss = self._find()
        value = self._first_loss(loss, outputs, targets)
        self._loss = loss
        return value

    def _first_loss(self, loss: Callable[[Any, Any], Any], outputs: Tensors, targets: Tensors) -> Any:
        """Return the first loss. Raise WorkerError if nothing can be learned from it."""
        arguments = f"answers of {_shapes(outputs)} and targets of {_shapes(targets)}"
        try:
            with warnings.catch_warnings():
                # Torch computes a loss of other shapes by broadcasting, and only warns of it.
                warnings.filterwarnings("error", message="Using a target size")
                value = loss(_single_or_all(outputs), _single_or_all(targets))
        except Exception as error:
            if outcome.indicated(f"{type(error).__name__}: {error}"):
                raise
            raise self._wrong(f"does not take {arguments}: {outcome.sentence(error)}") from error
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            kind = (
                f"a tensor of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value).__name__
            )
            raise self._wrong(f"returned {kind} for {arguments}, and one number was expected")
        if not value.requires_grad:
            raise self._wrong("does not depend on any weight of the network that is trained")
        return value

    def _wrong(self, reason: str) -> WorkerError:
        return WorkerError("error", f"{self.name}: its training_loss {reason}")


def _single_or_all(values: Tensors) -> Any:
    """Return the tensor if there is only one, else the tuple."""
    return values[0] if len(values) == 1 else values


def _shapes(values: Tensors) -> str:
    return " and ".join(f"{'x'.join(map(str, value.shape)) or '1'} {str(value.dtype)[6:]}" for value in values)
