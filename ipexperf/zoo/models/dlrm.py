"""DLRM: embeddings of people and films, their dot products, and two small MLPs."""

from __future__ import annotations

import importlib
from typing import Any

from ipexperf.ext import COMPILED, Workbench, model
from ipexperf.zoo.datasets import ratings

TABLES = (*ratings.TABLES, ratings.GENRES + 1)
"""Table sizes: people, films, ages, genders, occupations, and genres plus one for padding."""
DENSE = 2
WIDTH = 32
OPERATORS = ("torch_ipex::merged_embeddingbag_forward", "torch_ipex::interaction_forward")

MERGED = (
    "from intel_extension_for_pytorch.nn.functional import interaction  # in forward, in place of the dot products",
    "from intel_extension_for_pytorch.nn.modules import MergedEmbeddingBag",
    "model.bags = MergedEmbeddingBag.from_embeddingbag_list(model.bags)  # MergedEmbeddingBagWithAdaGrad to train",
)


def _merged(network: Any) -> Any:
    return importlib.import_module("ipexperf.zoo.models._dlrm_ipex").tune(network)


def _merged_for_training(network: Any, bench: Workbench) -> Any:
    return importlib.import_module("ipexperf.zoo.models._dlrm_ipex").tune_for_training(network, bench)


# AdaGrad as published: SGD hardly moves rows with few ratings. Three epochs with batches of 512 reach an AUC of 0.87.
@model(
    "dlrm",
    size=WIDTH,
    batch_train=512,
    batch_infer=512,
    task="recommendation",
    data="ratings",
    channels_last=False,
    optimizer="adagrad",
    learning_rate=0.02,
    recipe_steps=468,
    train_steps=312,
    held_out=4096,
    tuned={"ipex": _merged},
    scripts={"ipex": MERGED},
    tuned_training={"ipex": _merged_for_training},
    operators={"ipex": OPERATORS},
    why_nots={f"{COMPILED} on ipex": "torch.compile cannot trace IPEX's kernel for the interaction, and raises"},
)
def dlrm() -> Any:
    return importlib.import_module("ipexperf.zoo.models._dlrm").Dlrm(TABLES, DENSE, WIDTH)
