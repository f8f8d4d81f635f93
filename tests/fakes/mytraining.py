"""A stranger's networks with something to learn: nothing of ipexperf is imported here."""

from collections import OrderedDict
from functools import partial
from typing import Any

import torch
from torch import nn

training_loss = nn.functional.cross_entropy


def training_batch() -> Any:
    """Images, each with the number of its brightness."""
    numbers = torch.randint(0, 10, (16,))
    return torch.randn(16, 3, 8, 8) / 4 + numbers.view(16, 1, 1, 1) / 5 - 1, numbers


class Net(nn.Module):
    def __init__(self, *, container: bool = False) -> None:
        super().__init__()
        self.container = container
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.1), nn.Flatten())
        self.head = nn.Linear(8 * 36, 10)

    def forward(self, images: Any) -> Any:
        hidden = self.features(images)
        logits = self.head(hidden)
        return OrderedDict(logits=logits, hidden=hidden) if self.container else logits


learner = quick = misfit = broad = unreduced = detached = worded = ragged = lone = Net
mapped = partial(Net, container=True)
quick_training_optimizer = "sgd"
quick_training_rate = 0.05


def mapped_training_loss(answers: Any, targets: Any) -> Any:
    logits, hidden = answers
    return nn.functional.cross_entropy(logits, targets) + 1e-3 * hidden.pow(2).mean()


def frozen() -> Any:
    network = Net()
    network.features.requires_grad_(False)
    return network


def bare() -> Any:
    return nn.Sequential(nn.Flatten(), nn.ReLU())


def misfit_training_batch() -> Any:
    images, _ = training_batch()
    return images, torch.rand(16, 7)


broad_training_loss = nn.MSELoss()


def broad_training_batch() -> Any:
    images, numbers = training_batch()
    return images, numbers.float().view(16, 1)


def unreduced_training_loss(answers: Any, targets: Any) -> Any:
    return nn.functional.cross_entropy(answers, targets, reduction="none")


def detached_training_loss(answers: Any, targets: Any) -> Any:
    return nn.functional.cross_entropy(answers.detach(), targets)


worded_training_loss = "cross_entropy"


def ragged_training_batch() -> Any:
    images, numbers = training_batch()
    return images, numbers[:8]


def lone_training_batch() -> Any:
    return training_batch()[0]
