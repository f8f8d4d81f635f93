"""A network that trains in a moment, and a data-parallel training that lies. Needs torch."""

import os
import sys
from collections.abc import Callable
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Workbench
from ipexperf.bench.lazy import torch
from ipexperf.bench.modes._ranks import RankSession
from ipexperf.bench.modes.train_ddp import TrainDdp


def small() -> Any:
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, stride=2, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(256, 10),
    )


def model(name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    return registry.model(name, size=8, batch_train=16, batch_infer=16, learning_rate=0.05)


model("small")(small)


@model("flat")
def flat() -> Any:
    """Without a bias inductor has no kernel of its own to write: nothing waits for the C++ compiler."""
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 10, bias=False))


@model("talking")
def talking() -> Any:
    """The small network, which says in which rank it is built. The worker's own copy is in none."""
    print(f"built in rank {os.environ.get('RANK')}", file=sys.stderr, flush=True)
    return small()


class Alone(RankSession):
    """Trains beside the others, and exchanges no gradients with them."""

    def for_steps(self, network: Any) -> Any:
        return network


class DdpAlone(TrainDdp):
    name = "ddp_alone"

    def rank(self, bench: Workbench, rank: int, ranks: int) -> RankSession:
        return Alone(bench, rank, ranks)


registry.modes.add("ddp_alone", DdpAlone())
