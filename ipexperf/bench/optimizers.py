"""The optimizers for training, and their counts of updates."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ipexperf.bench.cell import Cell
from ipexperf.bench.knob import Knob, Number
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.model import Model

MOMENTUM = 0.9
RATES = {"sgd": 0.02, "adagrad": 1e-3, "adam": 1e-3, "adamw": 1e-3, "lamb": 3e-3}
"""Learning rates of optimizers other than the model's."""
KINDS = {"sgd": "SGD", "adagrad": "Adagrad", "adam": "Adam", "adamw": "AdamW"}
"""torch's names of its optimizers."""
_LAMB = "intel_extension_for_pytorch.optim._lamb"


@dataclass(frozen=True)
class OptimizerKnob(Knob):
    def why_not(self, cell: Cell, value: str, facts: Facts) -> str | None:
        if value == "lamb" and cell.stack != "ipex":
            return f"Lamb comes with IPEX: the stack {cell.stack} has none"
        return super().why_not(cell, value, facts)


KNOBS = (
    OptimizerKnob(
        "optimizer",
        "what updates the weights; lamb is IPEX's own, and IPEX fuses all of them but adamw on the CPU",
        tuple(RATES),
        of_model="optimizer",
    ),
    Number("accumulate", "batches whose gradients are added up for one step", ("1",)),
)
"""Knobs of training in one process and in several."""


def rate(name: str, model: Model) -> float:
    """Return the learning rate: the model's, if this is the model's optimizer."""
    return model.learning_rate if name == model.optimizer else RATES[name]


def script(name: str, model: Model) -> tuple[str, ...]:
    """Return the lines of a user's script that do what `make` does."""
    if name == "lamb":
        return f"from {_LAMB} import Lamb", f"optimizer = Lamb(model.parameters(), lr={rate(name, model):g})"
    momentum = f", momentum={MOMENTUM}" if name == "sgd" else ""
    return (f"optimizer = torch.optim.{KINDS[name]}(model.parameters(), lr={rate(name, model):g}{momentum})",)


def make(name: str, parameters: Iterable[Any], model: Model) -> Any:
    """Create an optimizer of torch, or for Lamb IPEX's Python version. It is not fused yet."""
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=rate(name, model), momentum=MOMENTUM)
    if name == "lamb":
        return importlib.import_module(_LAMB).Lamb(parameters, lr=rate(name, model))
    return getattr(torch.optim, KINDS[name])(parameters, lr=rate(name, model))


def settle(optimizer: Any, name: str, model: Model, left: int) -> None:
    """Reduce the learning rate in the last steps of a model that settles. Called before each step."""
    if model.settles:
        for group in optimizer.param_groups:
            group["lr"] = rate(name, model) * min(1.0, left / model.settles)


def updates(optimizer: Any) -> int | None:
    """Return the number of updates that the optimizer counted, or None if it does not count, like SGD."""
    counts = {int(state["step"]) for state in optimizer.state.values() if "step" in state}
    return min(counts, default=None)
