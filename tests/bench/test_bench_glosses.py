"""Definitions in the on-disk format of their package become balanced classes, or are refused. Files are made here."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_bench_wordpiece import WORDS, document

from ipexperf.errors import WorkerError
from ipexperf.zoo.datasets import glosses
from ipexperf.zoo.datasets.glosses import GLOSSES, NOUNS, TOKENIZER, Glosses

if TYPE_CHECKING:
    from ipexperf.bench.api import Examples, Packaged

pytestmark = pytest.mark.torch

HELD_OUT = 2
LINES = {
    "ah": "low how",
    "ahs": "low how",  # a synonym, of the same class
    "hello": "zz want",
    "wanting": "zz want",  # one that is of another class
    "low": "you | are you",  # two meanings
    "you": "how want",
    "zz": "want low",
    "are": "wanted",
    "how": "running",
    "want": "unwanted",
    "un": "un",
    "wa": "ah",
}
CLASSES = {"low how": 1, "how want": 1, "want low": 1, "wanted": 0, "running": 0, "unwanted": 0, "un": 0, "ah": 0}
"""What is left of them: three define nouns, and five do not."""


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The definitions in a folder of packages, where their sums are known."""
    lines = "".join(f"{word}\t{told}\n" for word, told in LINES.items())
    made = {
        "GLOSSES": (GLOSSES, gzip.compress(lines.encode())),
        "NOUNS": (NOUNS, b"Ah\nahs\nhello\nlow\nYou\nzz\n"),
        "TOKENIZER": (TOKENIZER, json.dumps(document()).encode()),
    }
    for name, (known, data) in made.items():
        write(tmp_path / known.file, data)
        changed: Packaged = dataclasses.replace(known, sha256=hashlib.sha256(data).hexdigest())
        monkeypatch.setattr(glosses, name, changed)
    monkeypatch.setattr(glosses, "HELD_OUT", HELD_OUT)
    return str(tmp_path / GLOSSES.file)


def texts(examples: Examples) -> list[tuple[str, int]]:
    """The pieces of each example, without those that every text has, and its class."""
    rows = zip(*(value.tolist() for value in (*examples.inputs, *examples.targets)), strict=True)
    return [
        (" ".join(WORDS[x] for x, kept in zip(row, mask, strict=True) if kept and x > 2), target)
        for row, mask, target in rows
    ]


def test_the_definitions_are_read(path: str) -> None:
    """As many of either class, each text once, none of a word of two meanings or of two classes."""
    split = Glosses().read(path, 6)
    train, test = texts(split.train), texts(split.test)
    assert [target for _, target in (*test, *train)] == [0, 1] * 3
    known = {" ".join(pieces(text)): target for text, target in CLASSES.items()}
    assert {text: known[text] for text, _ in (*train, *test)} == dict((*train, *test))
    assert len({text for text, _ in (*train, *test)}) == 6
    assert (len(test), split.test.inputs[0].shape) == (HELD_OUT, (HELD_OUT, 6))
    assert Glosses().read(path, 6).train.inputs[0].equal(split.train.inputs[0])


def pieces(text: str) -> list[str]:
    """The pieces of a text."""
    from ipexperf.zoo.datasets._wordpiece import WordPiece

    return [WORDS[number] for number in WordPiece(document()).tokens(text, 16)[1:-1]]


@pytest.mark.parametrize("known", [GLOSSES, NOUNS, TOKENIZER], ids=lambda known: Path(known.file).name)
def test_another_file_is_refused(path: str, tmp_path: Path, known: Packaged) -> None:
    """Other texts, other classes or other tokens would be another measurement under the same name."""
    write(tmp_path / known.file, (tmp_path / known.file).read_bytes() + b" ")
    with pytest.raises(WorkerError, match=f"is not the known {known.file} of {known.package}"):
        Glosses().read(path, 6)


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason names the package that is not there, and how to have it."""
    monkeypatch.setattr(glosses, "NOUNS", dataclasses.replace(NOUNS, package="no-such-package"))
    found, reason = Glosses().find(None)
    if GLOSSES.find()[0] is None:
        assert (found, reason) == (None, f"it needs the data of {GLOSSES.package}, which is not installed: make data")
    else:
        assert (found, reason) == (None, "it needs the data of no-such-package, which is not installed: make data")


def test_the_packaged_definitions_are_the_known_ones() -> None:
    """Of the real package: as many as are said, half of them of either class, none both learned and held out."""
    found, why_not = Glosses().find(None)
    if found is None:
        pytest.skip(f"needs the packages: {why_not}")
    split = Glosses().read(found, 32)
    assert (len(split.train), len(split.test)) == (glosses.TRAIN, glosses.HELD_OUT)
    assert int(split.test.targets[0].sum()) == glosses.HELD_OUT // 2
    both = {tuple(row) for row in split.train.inputs[0].tolist()} & {tuple(x) for x in split.test.inputs[0].tolist()}
    assert not both
    # Nearly every definition is whole, so that what is measured is what people wrote.
    assert float((split.train.inputs[1].sum(1) == 32).double().mean()) < 0.05


def test_the_text_is_foretold_byte_by_byte(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each target is the byte behind its input, across pieces too, and the text has each definition once."""
    import torch

    monkeypatch.setattr(glosses, "HELD_OUT_PIECES", 2)
    monkeypatch.setattr(glosses, "TRAIN_PIECES", 5)
    split = glosses.GlossText().read(path, 7)
    assert (len(split.test), len(split.train)) == (2, 5)
    together = (torch.cat(leaves) for leaves in zip(split.test.tensors, split.train.tensors, strict=True))
    pieces, following = (bytes(value.flatten().tolist()) for value in together)
    assert pieces[1:] == following[:-1]
