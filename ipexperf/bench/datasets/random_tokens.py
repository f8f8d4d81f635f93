"""Random tokens, for language models with random weights: what they are makes no difference to the speed."""

from __future__ import annotations

from ipexperf.bench import registry
from ipexperf.bench.api import Dataset, Examples, Split
from ipexperf.bench.lazy import torch

VOCABULARY = 32_000
"""Number of different tokens. Every model that reads them has more."""
EXAMPLES = 64
SEED = 0


class RandomTokens(Dataset):
    name = "random_tokens"
    licence = "made here"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        del folder
        return __file__, None

    def read(self, path: str, size: int) -> Split:
        del path
        generator = torch.Generator().manual_seed(SEED)
        tokens = torch.randint(VOCABULARY, (2 * EXAMPLES, size + 1), generator=generator)
        examples = Examples((tokens[:, :-1].contiguous(),), (tokens[:, 1:].contiguous(),))
        return Split(examples.part(slice(EXAMPLES)), examples.part(slice(EXAMPLES, None)))


registry.datasets.add("random_tokens", RandomTokens())
