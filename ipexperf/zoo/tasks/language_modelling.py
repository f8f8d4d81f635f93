"""Language modelling: cross entropy of the next token, and the share of correctly predicted tokens."""

from __future__ import annotations

from typing import Any

from ipexperf.bench.networks.own_task import Own
from ipexperf.ext import Tensors, register, torch
from ipexperf.zoo.tasks.classification import Classification


class LanguageModelling(Classification):
    """Classification of each token by the next one."""

    name = "language_modelling"
    axis = 2
    products = True
    next_token = True
    metric = "share of next tokens predicted correctly"
    unit = "{0} tokens"
    least = 0.05
    """A minute of training predicts little of a text, so this is low."""

    def loss(self, outputs: Tensors, targets: Tensors) -> Any:
        return torch.nn.functional.cross_entropy(outputs[0].flatten(0, 1), targets[0].flatten())

    def metrics(self, outputs: Tensors, targets: Tensors) -> dict[str, float]:
        """Return the perplexity."""
        return {"perplexity": float(self.loss(outputs, targets).exp())}


class UntrainedLanguageModelling(Own):
    """With random weights: the outputs are compared with those in float64, and nothing is scored."""

    name = "untrained_language_modelling"
    unit = "{0} tokens"
    near = 0.75
    """Random weights amplify rounding: correct kernels with 4 bits a weight have an error of 0.4 in 30 layers."""
    products = True
    next_token = True


register(LanguageModelling())
register(UntrainedLanguageModelling())
