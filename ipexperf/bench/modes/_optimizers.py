"""The optimizers that training may use, and what one tells of the updates that it made."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ipexperf.bench.facts import Facts
from ipexperf.bench.kinds import Cell
from ipexperf.bench.knobs import Knob, Number
from ipexperf.bench.lazy import torch
from ipexperf.bench.subjects import Model
from ipexperf.errors import UsageError

MOMENTUM = 0.9
RATES = {"sgd": 0.02, "adagrad": 1e-3, "adam": 1e-3, "adamw": 1e-3, "lamb": 3e-3}
"""Learning rates of optimizers that the model does not declare its own for."""
_LAMB = "intel_extension_for_pytorch.optim._lamb"


@dataclass(frozen=True)
class Optimizer(Knob):
    """Which optimizer trains: `--perf-optimizer` is this knob."""

    name: str = "optimizer"
    help: str = "what updates the weights; lamb is IPEX's own, and IPEX fuses all of them but adamw"
    values: tuple[str, ...] = ("sgd", "adagrad", "adam", "adamw", "lamb")

    def default(self, model: Model, beside: Mapping[str, str]) -> str:
        del beside
        return model.optimizer

    def ablated(self, model: Model, beside: Mapping[str, str]) -> str:
        del model, beside
        raise UsageError("the knob optimizer has no 'off': ablation is for knobs that are on or off")

    def why_not(self, cell: Cell, value: str, facts: Facts) -> str | None:
        if value == "lamb" and cell.stack != "ipex":
            return f"Lamb comes with IPEX: the stack {cell.stack} has none"
        return super().why_not(cell, value, facts)


KNOBS = (
    Optimizer(),
    Number("accumulate", "batches whose gradients are added up for one step", ("1",)),
)
"""What training in one process and in several have alike."""


def rate(name: str, model: Model) -> float:
    """The learning rate of an optimizer: the model's own where it is the model's optimizer."""
    return model.learning_rate if name == model.optimizer else RATES[name]


def make(name: str, parameters: Iterable[Any], model: Model) -> Any:
    """An optimizer as torch, or for Lamb IPEX's plain Python, has it: nothing is fused yet."""
    kinds = {"adagrad": "Adagrad", "adam": "Adam", "adamw": "AdamW"}
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=rate(name, model), momentum=MOMENTUM)
    if name == "lamb":
        return importlib.import_module(_LAMB).Lamb(parameters, lr=rate(name, model))
    return getattr(torch.optim, kinds[name])(parameters, lr=rate(name, model))


def settle(optimizer: Any, name: str, model: Model, left: int) -> None:
    """Before each step: over the last ones of a model that settles, the fewer are left the smaller they are."""
    if model.settles:
        for group in optimizer.param_groups:
            group["lr"] = rate(name, model) * min(1.0, left / model.settles)


def updates(optimizer: Any) -> int | None:
    """How many updates the optimizer itself has counted, or None where it keeps no count, as SGD does."""
    counts = {int(state["step"]) for state in optimizer.state.values() if "step" in state}
    return min(counts, default=None)
