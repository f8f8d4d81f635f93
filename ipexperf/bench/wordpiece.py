"""BERT's tokens: its normaliser, its words, and the longest pieces of a word that the vocabulary has.

As a `tokenizer.json` of the kinds BertNormalizer, BertPreTokenizer and WordPiece describes them; any other is refused.
"""

from __future__ import annotations

import json
import string
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ipexperf.errors import WorkerError

KINDS = {"normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer", "model": "WordPiece"}
PADDING, FIRST, LAST = "[PAD]", "[CLS]", "[SEP]"
SPACES = "\t\n\r"
"""Control characters that are spaces."""
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
"""Where the ideographs are, each of which is a word: BERT's own list."""


class WordPiece:
    """A vocabulary, and how a text becomes numbers of it."""

    def __init__(self, document: dict[str, Any]) -> None:
        for part, kind in KINDS.items():
            found = (document.get(part) or {}).get("type")
            if found != kind:
                raise WorkerError("error", f"the tokenizer's {part} is {found}, and only {kind} is known")
        model, normaliser = document["model"], document["normalizer"]
        self.vocabulary: dict[str, int] = model["vocab"]
        self._unknown = self.vocabulary[model["unk_token"]]
        self._prefix: str = model["continuing_subword_prefix"]
        self._longest: int = model["max_input_chars_per_word"]
        self._lowercase: bool = normaliser["lowercase"]
        # Where nothing is said of accents they go with the capitals.
        self._plain: bool = self._lowercase if normaliser["strip_accents"] is None else normaliser["strip_accents"]
        self._known: dict[str, list[int]] = {}

    @classmethod
    def read(cls, path: str | Path) -> WordPiece:
        """The tokenizer of a `tokenizer.json`."""
        return cls(json.loads(Path(path).read_text(encoding="utf-8")))

    def tokens(self, text: str, size: int) -> list[int]:
        """The numbers of a text between its first and its last token, cut to this many."""
        inside: list[int] = []
        for word in self._words(text):
            inside += self._pieces(word)
            if len(inside) >= size:
                break
        return [self.vocabulary[FIRST], *inside[: size - 2], self.vocabulary[LAST]]

    def batch(self, texts: Iterable[str], size: int) -> tuple[list[list[int]], list[list[int]]]:
        """Texts as rows of equal length, and for each number whether it is one of the text's or filled up."""
        rows = [self.tokens(text, size) for text in texts]
        mask = [[1] * len(row) + [0] * (size - len(row)) for row in rows]
        return [row + [self.vocabulary[PADDING]] * (size - len(row)) for row in rows], mask

    def _words(self, text: str) -> Iterator[str]:
        """The words of a text, with each punctuation mark and each ideograph as one of its own."""
        for word in "".join(map(_cleaned, text)).split():
            plain = _unaccented(word) if self._plain else word
            begin = 0
            lowered = plain.lower() if self._lowercase else plain
            for end, character in enumerate(lowered):
                if _punctuation(character):
                    yield from filter(None, (lowered[begin:end], character))
                    begin = end + 1
            if lowered[begin:]:
                yield lowered[begin:]

    def _pieces(self, word: str) -> list[int]:
        """The longest piece that the word begins with, then the longest of what is left; or that it is unknown."""
        if word not in self._known:
            self._known[word] = self._split(word)
        return self._known[word]

    def _split(self, word: str) -> list[int]:
        if len(word) > self._longest:
            return [self._unknown]
        found: list[int] = []
        begin = 0
        while begin < len(word):
            prefix = self._prefix if begin else ""
            ends = (end for end in range(len(word), begin, -1) if prefix + word[begin:end] in self.vocabulary)
            end = next(ends, 0)
            if not end:
                return [self._unknown]
            found.append(self.vocabulary[prefix + word[begin:end]])
            begin = end
        return found


def _cleaned(character: str) -> str:
    """A character as the normaliser leaves it: no control characters, one kind of space, ideographs apart."""
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
