"""Sentences of made words, for encoders as tokens of words, and for decoders as a text of bytes."""

from __future__ import annotations

import itertools
from typing import Any

from ipexperf.ext import Dataset, Examples, Split, register, torch

SEED = 0
SYLLABLES = [f"{first}{vowel}{last}" for first in "bdfgklmnprst" for vowel in "aeiou" for last in ("", "n", "r", "s")]
WORDS = 1000
RARE = 3.0
"""The word of rank r is as frequent as 1 / (r + this), as in languages."""
KINDS = 2
APART = 0.8
"""How differently the two kinds use a word: the deviation of the logarithm of its frequency."""
SHORTEST = 5
"""Number of words in the shortest sentence."""
PADDING, FIRST, LAST, OFFSET = 0, 101, 102, 1000
"""Tokens as BERT numbers them: padding, begin, end, and the first of the words."""
TRAIN, HELD_OUT = 2048, 256
"""Number of training and held-out sentences. Few are held out, because the largest network must process all of them."""
TRAIN_PIECES, HELD_OUT_PIECES = 8192, 128
"""The same of pieces of text."""


class Sentences(Dataset):
    """Sentences of two kinds, which use the same words, but not as often."""

    name = "sentences"
    licence = "made here"

    def read(self, path: str, size: int) -> Split:
        """Return tokens and the mask of padding. The class is the kind of the sentence."""
        generator = torch.Generator().manual_seed(SEED)
        kinds = torch.arange(TRAIN + HELD_OUT) % KINDS
        words = torch.empty(len(kinds), size - 2, dtype=torch.int64)
        for kind, weights in enumerate(_frequencies(generator)):
            chosen = torch.multinomial(weights, int((kinds == kind).sum()) * (size - 2), True, generator=generator)
            words[kinds == kind] = chosen.view(-1, size - 2)
        ends = torch.randint(SHORTEST, size - 1, (len(kinds), 1), generator=generator) + 1
        places = torch.arange(size)
        tokens = torch.nn.functional.pad(words + OFFSET, (1, 1), value=FIRST)
        tokens = torch.where(places < ends, tokens, torch.where(places == ends, LAST, PADDING))
        examples = Examples((tokens, (places <= ends).long()), (kinds,))
        return Split(examples.part(slice(HELD_OUT, None)), examples.part(slice(HELD_OUT)))


class Text(Dataset):
    """The same words, spelled in letters, as one text."""

    name = "text"
    licence = "made here"

    def read(self, path: str, size: int) -> Split:
        """Return pieces of the text. The target of a byte is the next."""
        generator = torch.Generator().manual_seed(SEED)
        weights, _ = _frequencies(generator)
        count = TRAIN_PIECES + HELD_OUT_PIECES
        # A word takes more than two bytes, with the space behind it.
        # Squared, so that few words are usual: else low precision would often choose between bytes that are as likely.
        words = torch.multinomial(weights**2, count * size // 2, True, generator=generator)
        spelled = _spelled(generator)
        data = " ".join(spelled[word] for word in words.tolist()).encode()[: count * size + 1]
        tokens = torch.frombuffer(bytearray(data), dtype=torch.uint8).long()
        pieces, following = (tokens[begin:][: count * size].reshape(-1, size) for begin in (0, 1))
        examples = Examples((pieces,), (following,))
        return Split(examples.part(slice(HELD_OUT_PIECES, None)), examples.part(slice(HELD_OUT_PIECES)))


def _frequencies(generator: Any) -> tuple[Any, Any]:
    """Return how often each kind uses each word."""
    usual = 1 / (torch.arange(WORDS) + RARE)
    liking = (APART / 2 * torch.randn(WORDS, generator=generator)).exp()
    return usual * liking, usual / liking


def _spelled(generator: Any) -> list[str]:
    """Return the spelling of each word: the frequent ones have one syllable, the others two."""
    pairs = ["".join(pair) for pair in itertools.product(SYLLABLES, repeat=2)]
    orders = [torch.randperm(len(words), generator=generator).tolist() for words in (SYLLABLES, pairs)]
    return [words[number] for words, order in zip((SYLLABLES, pairs), orders, strict=True) for number in order][:WORDS]


register(Sentences())
register(Text())
