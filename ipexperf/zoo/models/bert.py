"""BERT, DistilBERT and MiniLM as text classifiers: their shapes, without their published weights.

110 million weights cannot be trained in minutes, so the encoders of BERT and DistilBERT stay random and only a last
layer is fitted. That is enough to measure low precision on mostly correct answers, but says nothing about the accuracy
of a pretrained BERT. MiniLM is small enough to be trained as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ipexperf.ext import TRAINING, model
from ipexperf.zoo.models import _probe

UNTRAINED = "335 million weights do not learn in the few steps of a case: train bert_base"


def _built(**shape: Any) -> Any:
    from ipexperf.zoo.models import _bert

    return _bert.Bert(_bert.Shape(**shape))


def _text(name: str, **declaration: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Declare what all of them share."""
    shared = {"size": 32, "task": "text_classification", "data": "sentences", "channels_last": False}
    return model(name, **shared, quantisation="dynamic", optimizer="adam", **declaration)


# On definitions of words, batches of 4 learned by luck, and a rate of 1e-4 failed even with a warm-up of 30 steps.
@_text(
    "bert_base",
    batch_train=16,
    batch_infer=8,
    learning_rate=3e-5,
    train_steps=88,
    held_out=128,
    recipe=partial(_probe.fit, examples=512, ridge=_probe.OF_TEXT),
)
def bert_base() -> Any:
    return _built(layers=12, width=768, heads=12)


# Few examples: otherwise float64 and fitting take minutes.
@_text(
    "bert_large",
    batch_train=2,
    batch_infer=2,
    held_out=64,
    recipe=partial(_probe.fit, examples=256, ridge=_probe.OF_TEXT),
    why_nots={TRAINING: UNTRAINED},
)
def bert_large() -> Any:
    return _built(layers=24, width=1024, heads=16)


@_text(
    "distilbert",
    batch_train=8,
    batch_infer=8,
    learning_rate=1e-4,
    held_out=128,
    recipe=partial(_probe.fit, examples=512, ridge=_probe.OF_TEXT),
)
def distilbert() -> Any:
    return _built(layers=6, width=768, heads=12, kinds=0)


@_text(
    "minilm",
    version=2,
    batch_train=16,
    batch_infer=16,
    learning_rate=3e-4,
    recipe_steps=120,
    train_steps=120,
)
def minilm() -> Any:
    return _built(layers=6, width=384, heads=12, pooler=False)
