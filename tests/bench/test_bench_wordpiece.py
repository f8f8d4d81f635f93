"""Texts become the tokens that BERT's own tokenizer makes of them, and safetensors files the tensors that they hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ipexperf.zoo.datasets._wordpiece import WordPiece
from ipexperf.zoo.datasets.glosses import TOKENIZER

WORDS = (
    *("[UNK]", "[CLS]", "[SEP]", "want", "##want", "##ed", "wa", "un", "runn", "##ing", ","),
    *("low", "hello", "!", "?", "how", "are", "you", "ah", "zz", "[PAD]", "don", "'", "t"),
)


def document() -> dict[str, Any]:
    """A `tokenizer.json` with a few words."""
    return {
        "model": {
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 12,
            "vocab": {word: number for number, word in enumerate(WORDS)},
        },
    }


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        # The first four are cases of the original's own tests.
        ("UNwant\u00e9d,running", ["un", "##want", "##ed", ",", "runn", "##ing"]),
        ("unwantedX running", ["[UNK]", "runn", "##ing"]),
        (" \tHeLLo!how  \n Are yoU?  ", ["hello", "!", "how", "are", "you", "?"]),
        ("don't", ["don", "'", "t"]),
        ("lowlowlowlowlow", ["[UNK]"]),
        ("", []),
    ],
)
def test_a_text_is_cut_as_bert_cuts_it(text: str, pieces: list[str]) -> None:
    """Lower case, no accents, marks apart, the longest pieces; a word that has none is unknown as a whole."""
    found = WordPiece(document()).tokens(text, 16)
    assert [WORDS[number] for number in found] == ["[CLS]", *pieces, "[SEP]"]


def test_a_batch_has_rows_of_one_length() -> None:
    """A long text is cut and keeps its last token; a short one is filled up, and the mask says where."""
    tokens, mask = WordPiece(document()).batch(["want low want low want", "low"], 5)
    assert [[WORDS[number] for number in row] for row in tokens] == [
        ["[CLS]", "want", "low", "want", "[SEP]"],
        ["[CLS]", "low", "[SEP]", "[PAD]", "[PAD]"],
    ]
    assert mask == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]


def test_the_packaged_tokenizer_makes_the_published_tokens() -> None:
    """The numbers are those that are published for this vocabulary."""
    path, why_not = TOKENIZER.find()
    if path is None:
        pytest.skip(f"needs {TOKENIZER.package}: {why_not}")
    TOKENIZER.check(path)
    known = WordPiece.read(path)
    assert len(known.vocabulary) == 30522
    assert known.tokens("Hello world", 8) == [101, 7592, 2088, 102]
    assert known.tokens("Jim Henson was a puppeteer", 16) == [101, 3958, 27227, 2001, 1037, 13997, 11510, 102]


needs_torch = pytest.mark.torch


def safetensors(path: Path, table: dict[str, Any], data: bytes) -> Path:
    """A file as the format has it."""
    head = json.dumps(table).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + data)
    return path


@needs_torch
def test_a_safetensors_file_is_read(tmp_path: Path) -> None:
    """Names, dtypes, shapes and values are those of the file."""
    import torch

    from ipexperf.bench.artifacts.safetensors import read

    table = {
        "__metadata__": {"format": "pt"},
        "whole": {"dtype": "I64", "shape": [2], "data_offsets": [0, 16]},
        "half": {"dtype": "BF16", "shape": [1, 2], "data_offsets": [16, 20]},
    }
    half = torch.tensor([[1.5, -2.0]], dtype=torch.bfloat16)
    data = torch.tensor([7, -1]).numpy().tobytes() + half.view(torch.int16).numpy().tobytes()
    found = read(safetensors(tmp_path / "a", table, data))
    assert found["whole"].tolist() == [7, -1]
    assert torch.equal(found["half"], half)
    assert set(found) == {"whole", "half"}
