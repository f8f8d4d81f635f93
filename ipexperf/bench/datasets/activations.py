"""Random activations, for operators of decoders: what they are makes no difference to the speed."""

from __future__ import annotations

from ipexperf.bench import registry
from ipexperf.bench.api import Dataset, Examples, Split
from ipexperf.bench.lazy import torch

WIDTH = 8192
"""Numbers of a token. Each operator takes as many of them as it is wide."""
EXAMPLES = 2
SEED = 0


class Activations(Dataset):
    name = "activations"
    licence = "made here"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        del folder
        return __file__, None

    def read(self, path: str, size: int) -> Split:
        del path
        generator = torch.Generator().manual_seed(SEED)
        numbers = torch.randn(2 * EXAMPLES, size, WIDTH, generator=generator)
        examples = Examples((numbers,), (torch.zeros(2 * EXAMPLES),))
        return Split(examples.part(slice(EXAMPLES)), examples.part(slice(EXAMPLES, None)))


registry.datasets.add("activations", Activations())
