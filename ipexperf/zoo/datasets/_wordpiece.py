"""BERT's tokenizer for European languages: lower-case words without accents, cut into pieces of the vocabulary.

Reads a `tokenizer.json` with BertNormalizer, BertPreTokenizer and WordPiece. It is written out here because a worker's
interpreter need not have a package for it.
"""

from __future__ import annotations

import json
import string
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PADDING, FIRST, LAST = "[PAD]", "[CLS]", "[SEP]"


class WordPiece:
    """A vocabulary, and the conversion of texts to token ids."""

    def __init__(self, document: dict[str, Any]) -> None:
        model = document["model"]
        self.vocabulary: dict[str, int] = model["vocab"]
        self._unknown = self.vocabulary[model["unk_token"]]
        self._prefix: str = model["continuing_subword_prefix"]
        self._longest: int = model["max_input_chars_per_word"]

    @classmethod
    def read(cls, path: str | Path) -> WordPiece:
        """Read a `tokenizer.json`."""
        return cls(json.loads(Path(path).read_text(encoding="utf-8")))

    def tokens(self, text: str, size: int) -> list[int]:
        """Return the token ids of a text with its start and end tokens, cut to this many."""
        inside = [piece for word in _words(text) for piece in self._pieces(word)]
        return [self.vocabulary[FIRST], *inside[: size - 2], self.vocabulary[LAST]]

    def batch(self, texts: Iterable[str], size: int) -> tuple[list[list[int]], list[list[int]]]:
        """Return token ids of texts as rows of equal length, and a mask of the padding."""
        rows = [self.tokens(text, size) for text in texts]
        mask = [[1] * len(row) + [0] * (size - len(row)) for row in rows]
        return [row + [self.vocabulary[PADDING]] * (size - len(row)) for row in rows], mask

    def _pieces(self, word: str) -> list[int]:
        """Split a word greedily into the longest known pieces, or return the unknown token."""
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


def _words(text: str) -> list[str]:
    """Split a text into words. Each punctuation mark is a word."""
    plain = (part for part in unicodedata.normalize("NFD", text) if unicodedata.category(part) != "Mn")
    return "".join(f" {part} " if _punctuation(part) else part for part in plain).lower().split()


def _punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character).startswith("P")
