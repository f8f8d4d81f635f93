"""Classification: cross entropy, and the share of correct answers."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import Split, Task, Tensors, register, torch


class Classification(Task):
    name = "classification"
    metric = "share of right answers"
    axis = 1
    """The dimension of the outputs that counts the classes."""

    def loss(self, outputs: Tensors, targets: Tensors) -> Any:
        return torch.nn.functional.cross_entropy(outputs[0], targets[0])

    def agreement(self, outputs: Tensors, reference: Tensors) -> float:
        return self.score(outputs, (reference[0].argmax(self.axis),))

    def score(self, outputs: Tensors, targets: Tensors) -> float:
        return float((outputs[0].argmax(self.axis) == targets[0]).double().mean())

    def trivial(self, split: Split) -> float:
        """Return the score of the most frequent class in training."""
        most_frequent = split.train.targets[0].flatten().bincount().argmax()
        return float((split.test.targets[0] == most_frequent).double().mean())


class TextClassification(Classification):
    """The same of texts. Inputs are token ids and a mask of the padding."""

    name = "text_classification"
    products = True
    unit = "{0} tokens"
    inputs = 2


register(Classification())
register(TextClassification())
