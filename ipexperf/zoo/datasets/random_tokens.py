"""Random tokens, for language models with random weights: what they are makes no difference to the speed."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import Examples, register, torch
from ipexperf.zoo.datasets._random import RandomData

VOCABULARY = 32_000
"""Number of different tokens. Every model that reads them has more."""


class RandomTokens(RandomData):
    name = "random_tokens"
    examples = 64

    def draw(self, count: int, size: int, generator: Any) -> Examples:
        tokens = torch.randint(VOCABULARY, (count, size + 1), generator=generator)
        return Examples((tokens[:, :-1].contiguous(),), (tokens[:, 1:].contiguous(),))


register(RandomTokens())
