"""A network that needs no training and next to no time."""

from typing import Any

import ipexperf
from ipexperf.bench.lazy import torch


@ipexperf.model("smallnet", size=8, batch_train=16, batch_infer=16, trained=False)
def smallnet() -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 10))
