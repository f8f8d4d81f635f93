"""A small convolutional network, registered for the suite by `--perf-load=tinynet.py`."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import model, torch


@model("tinynet", size=16, batch_train=64, batch_infer=32)
def tinynet() -> Any:
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1, stride=2, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(256, 10),
    )
