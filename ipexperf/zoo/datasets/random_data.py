"""Data sets of random numbers: they need no file, and the values do not affect the speed."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import Dataset, Examples, Split, register, torch

SEED = 0
VOCABULARY = 32_000
"""Number of different tokens. Every model that reads them has more."""


class RandomData(Dataset):
    """Random examples from a seed, half of them held out."""

    licence = "made here"
    examples: int
    """The number of examples in each half."""

    def draw(self, count: int, size: int, generator: Any) -> Examples:
        """Draw this many examples."""
        raise NotImplementedError

    def read(self, path: str, size: int) -> Split:
        drawn = self.draw(2 * self.examples, size, torch.Generator().manual_seed(SEED))
        return Split(drawn.part(slice(self.examples)), drawn.part(slice(self.examples, None)))


class RandomTokens(RandomData):
    """Random tokens, for language models with random weights."""

    name = "random_tokens"
    examples = 64

    def draw(self, count: int, size: int, generator: Any) -> Examples:
        tokens = torch.randint(VOCABULARY, (count, size + 1), generator=generator)
        return Examples((tokens[:, :-1].contiguous(),), (tokens[:, 1:].contiguous(),))


register(RandomTokens())
