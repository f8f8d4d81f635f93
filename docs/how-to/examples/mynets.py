"""Networks of somebody's own, in a file that knows nothing of ipexperf."""

import torch
from torch import nn


def small():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 16 * 16, 10),
    )


def example():
    return torch.randn(8, 3, 32, 32)
