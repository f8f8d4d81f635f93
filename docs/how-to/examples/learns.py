"""A network of somebody's own with something to learn, in a file that knows nothing of ipexperf."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

training_loss = cross_entropy
training_optimizer = "sgd"
training_rate = 0.01


def small():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 16 * 16, 10),
    )


def training_batch():
    classes = torch.randint(0, 10, (8,))
    return torch.randn(8, 3, 32, 32) + classes.view(8, 1, 1, 1) / 5, classes
