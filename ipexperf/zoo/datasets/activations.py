"""Random activations, for operators of decoders: their values do not affect the speed."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import Examples, register, torch
from ipexperf.zoo.datasets._random import RandomData

WIDTH = 8192
"""Numbers of a token. Each operator takes as many of them as it is wide."""


class Activations(RandomData):
    name = "activations"
    examples = 2

    def draw(self, count: int, size: int, generator: Any) -> Examples:
        return Examples((torch.randn(count, size, WIDTH, generator=generator),), (torch.zeros(count),))


register(Activations())
