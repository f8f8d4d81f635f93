"""The parts of the network."""

import torch
from torch import nn


def activation(x):
    return nn.functional.gelu(x)


class Block(nn.Module):
    """Two convolutions with a shortcut."""

    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = activation(self.first(x))
        y = self.norm(self.second(y))
        return torch.relu(x + y)
