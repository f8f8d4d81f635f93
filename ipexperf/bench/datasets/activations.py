"""Random activations, for operators of decoders: their values do not affect the speed."""

from __future__ import annotations

from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Examples
from ipexperf.bench.datasets._random import RandomData
from ipexperf.bench.lazy import torch

WIDTH = 8192
"""Numbers of a token. Each operator takes as many of them as it is wide."""


class Activations(RandomData):
    name = "activations"
    examples = 2

    def draw(self, count: int, size: int, generator: Any) -> Examples:
        return Examples((torch.randn(count, size, WIDTH, generator=generator),), (torch.zeros(count),))


registry.datasets.add("activations", Activations())
