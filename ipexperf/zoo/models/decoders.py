"""A small GPT, and decoders of the Llama and Qwen families by their published configurations.

The large ones have random weights, so only their speed and the fidelity of their outputs say something. `gpt_small` and
`llama_small` are trained here for a few minutes on the bytes of a made text, so that low precision is judged by what it
does to a language model that has learned something.
"""

from __future__ import annotations

import functools
from typing import Any

from ipexperf.ext import model
from ipexperf.zoo.models._shape import Shape

BYTE_POSITIONS = 256
"""Longest text, and so the size of the key-value cache."""
# 200 steps of 16 x 64 bytes take a minute or two. With twice the rate, 66 steps only learned the most frequent byte.
LEARNED: dict[str, Any] = {
    "size": 64,
    "most": BYTE_POSITIONS,
    "batch_train": 16,
    "batch_infer": 8,
    "task": "language_modelling",
    "data": "text",
    "channels_last": False,
    "quantisation": "dynamic",
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "recipe_steps": 200,
    "train_steps": 150,
    "held_out": 64,
}
"""The settings that the small decoders of bytes share."""

SHAPED: dict[str, Any] = {
    "size": 128,
    "batch_train": 1,
    "batch_infer": 1,
    "task": "untrained_language_modelling",
    "data": "random_tokens",
    "channels_last": False,
    "trained": False,
    "served": True,
    "held_out": 2,
    "quantisation": "dynamic",
    "why_nots": {"training": "it has random weights, and is there for the speed of inference"},
}
"""The settings that all models with random weights share."""
POSITIONS = 2048
"""Longest text, and so the size of the key-value cache. The families allow more."""


SHAPES = {
    "llama_135m": Shape(
        layers=30,
        width=576,
        heads=9,
        key_heads=3,
        inner=1536,
        vocabulary=49152,
        positions=POSITIONS,
        theta=100_000.0,
    ),
    "qwen_500m": Shape(
        layers=24,
        width=896,
        heads=14,
        key_heads=2,
        inner=4864,
        vocabulary=151936,
        positions=POSITIONS,
        theta=1e6,
        epsilon=1e-6,
        bias=True,
    ),
    "llama_1b": Shape(
        layers=16,
        width=2048,
        heads=32,
        key_heads=8,
        inner=8192,
        vocabulary=128256,
        positions=POSITIONS,
        theta=500_000.0,
    ),
}
"""The configurations of SmolLM2-135M, Qwen2.5-0.5B and Llama-3.2-1B."""


def _decoder(shape: Shape) -> Any:
    from ipexperf.zoo.models import _decoder

    return _decoder.Decoder(shape)


@model("gpt_small", **LEARNED)
def gpt_small() -> Any:
    from ipexperf.zoo.models import _gpt

    return _gpt.Gpt(_gpt.Shape(layers=4, width=256, heads=4, positions=BYTE_POSITIONS))


@model("llama_small", **LEARNED)
def llama_small() -> Any:
    shape = Shape(layers=4, width=256, heads=8, key_heads=2, inner=704, vocabulary=256, positions=BYTE_POSITIONS)
    return _decoder(shape)


for name, shape in SHAPES.items():
    model(name, most=POSITIONS, **SHAPED)(functools.partial(_decoder, shape))
