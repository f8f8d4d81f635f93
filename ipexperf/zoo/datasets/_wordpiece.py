"""BERT's tokenizer: normalisation, splitting into words, and splitting words into pieces of the vocabulary.

Reads a `tokenizer.json` with BertNormalizer, BertPreTokenizer and WordPiece, in lower case and without accents.
"""

from __future__ import annotations

import json
import string
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

PADDING, FIRST, LAST = "[PAD]", "[CLS]", "[SEP]"
SPACES = "\t\n\r"
"""Control characters that count as spaces."""
IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
"""Ranges of ideographs, each of which is a word, as in BERT."""


class WordPiece:
    """A vocabulary, and the conversion of texts to token ids."""

    def __init__(self, document: dict[str, Any]) -> None:
        model = document["model"]
        self.vocabulary: dict[str, int] = model["vocab"]
        self._unknown = self.vocabulary[model["unk_token"]]
        self._prefix: str = model["continuing_subword_prefix"]
        self._longest: int = model["max_input_chars_per_word"]
        self._pieces_of: dict[str, list[int]] = {}

    @classmethod
    def read(cls, path: str | Path) -> WordPiece:
        """Read a `tokenizer.json`."""
        return cls(json.loads(Path(path).read_text(encoding="utf-8")))

    def tokens(self, text: str, size: int) -> list[int]:
        """Return the token ids of a text with its start and end tokens, cut to this many."""
        inside: list[int] = []
        for word in self._words(text):
            inside += self._pieces(word)
            if len(inside) >= size:
                break
        return [self.vocabulary[FIRST], *inside[: size - 2], self.vocabulary[LAST]]

    def batch(self, texts: Iterable[str], size: int) -> tuple[list[list[int]], list[list[int]]]:
        """Return token ids of texts as rows of equal length, and a mask of the padding."""
        rows = [self.tokens(text, size) for text in texts]
        mask = [[1] * len(row) + [0] * (size - len(row)) for row in rows]
        return [row + [self.vocabulary[PADDING]] * (size - len(row)) for row in rows], mask

    def _words(self, text: str) -> Iterator[str]:
        """Split a text into words. Each punctuation mark and ideograph is a word."""
        for word in "".join(map(_cleaned, text)).split():
            begin = 0
            lowered = _unaccented(word).lower()
            for end, character in enumerate(lowered):
                if _punctuation(character):
                    yield from filter(None, (lowered[begin:end], character))
                    begin = end + 1
            if lowered[begin:]:
                yield lowered[begin:]

    def _pieces(self, word: str) -> list[int]:
        """Split a word greedily into the longest known pieces, or return the unknown token."""
        if word not in self._pieces_of:
            self._pieces_of[word] = self._split(word)
        return self._pieces_of[word]

    def _split(self, word: str) -> list[int]:
        if len(word) > self._longest:
            return [self._unknown]
        pieces: list[int] = []
        begin = 0
        while begin < len(word):
            prefix = self._prefix if begin else ""
            ends = (end for end in range(len(word), begin, -1) if prefix + word[begin:end] in self.vocabulary)
            end = next(ends, 0)
            if not end:
                return [self._unknown]
            pieces.append(self.vocabulary[prefix + word[begin:end]])
            begin = end
        return pieces


def _cleaned(character: str) -> str:
    """Normalise a character: drop control characters, unify spaces, separate ideographs."""
    if character in SPACES or unicodedata.category(character) == "Zs":
        return " "
    if character == "\ufffd" or unicodedata.category(character).startswith("C"):
        return ""
    code = ord(character)
    return f" {character} " if any(begin <= code <= end for begin, end in IDEOGRAPHS) else character


def _unaccented(word: str) -> str:
    return "".join(part for part in unicodedata.normalize("NFD", word) if unicodedata.category(part) != "Mn")


def _punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character).startswith("P")
