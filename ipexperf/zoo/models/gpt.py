"""A small GPT on bytes of English, trained here for a few minutes."""

from __future__ import annotations

from typing import Any

from ipexperf.ext import model

POSITIONS = 256
"""Longest text, and so the size of the key-value cache."""
# 200 steps of 16 x 64 bytes take a minute or two. With twice the rate, 66 steps only learned the most frequent byte.
LEARNED: dict[str, Any] = {
    "size": 64,
    "most": POSITIONS,
    "batch_train": 16,
    "batch_infer": 8,
    "task": "language_modelling",
    "data": "gloss_text",
    "channels_last": False,
    "quantisation": "dynamic",
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "recipe_steps": 200,
    "train_steps": 150,
    "held_out": 64,
    "rate": 10.0,
}
"""The settings that the small decoders of bytes share."""


@model("gpt_small", **LEARNED)
def gpt_small() -> Any:
    from ipexperf.zoo.models import _gpt

    return _gpt.Gpt(_gpt.Shape(layers=4, width=256, heads=4, positions=POSITIONS))
