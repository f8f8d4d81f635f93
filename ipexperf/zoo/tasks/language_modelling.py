"""Language modelling: cross entropy of the next token, and the share of correctly predicted tokens."""

from __future__ import annotations

from typing import Any

from ipexperf.bench.networks.own_task import Own
from ipexperf.ext import Split, Task, Tensors, register, torch


class LanguageModelling(Task):
    name = "language_modelling"
    products = True
    next_token = True
    metric = "share of next tokens predicted correctly"
    unit = "{0} tokens"
    least = 0.05
    """A minute of training predicts little of a text, so this is low."""

    def loss(self, outputs: Tensors, targets: Tensors) -> Any:
        return torch.nn.functional.cross_entropy(outputs[0].flatten(0, 1), targets[0].flatten())

    def agreement(self, outputs: Tensors, reference: Tensors) -> float:
        return self.score(outputs, (reference[0].argmax(2),))

    def score(self, outputs: Tensors, targets: Tensors) -> float:
        return float((outputs[0].argmax(2) == targets[0]).double().mean())

    def trivial(self, split: Split) -> float:
        """Return the score of the most frequent token in training."""
        most_frequent = split.train.targets[0].flatten().bincount().argmax()
        return float((split.test.targets[0] == most_frequent).double().mean())

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


class Operators(Own):
    """Operators of a decoder, which are compared in the same way."""

    name = "operators"
    unit = "{0} tokens"
    products = True


register(LanguageModelling())
register(UntrainedLanguageModelling())
register(Operators())
