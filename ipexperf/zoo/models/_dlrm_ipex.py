"""IPEX's own kernels for DLRM: one for all tables, and one for the interaction."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from intel_extension_for_pytorch.nn.functional import interaction
from intel_extension_for_pytorch.nn.modules import MergedEmbeddingBag, MergedEmbeddingBagWithAdaGrad
from torch import nn

from ipexperf.bench import optimizers
from ipexperf.ext import Workbench
from ipexperf.zoo.models._dlrm import columns, flat


class MergedBags(nn.Module):  # type: ignore[misc] # torch has no types here
    """All tables in one merged module of IPEX, under their names in the untouched network."""

    def __init__(self, merged: Any) -> None:
        super().__init__()
        self.merged = merged
        self.register_state_dict_post_hook(_named_as_before)

    @property
    def updated_by(self) -> str:
        """The fused update of the tables in backward, or None if an optimizer updates them."""
        kind = type(self.merged)
        return kind.__name__ if kind is MergedEmbeddingBagWithAdaGrad else ""

    def __getattr__(self, name: str) -> Any:
        """Return the tables under the names of a checkpoint, by which IPEX looks up what it has cast.

        It does not cast tables that update themselves.
        """
        if name.isdecimal() and not self.updated_by:
            return SimpleNamespace(weight=self.merged.weights[int(name)])
        return super().__getattr__(name)

    def forward(self, sparse: Any) -> list[Any]:
        pairs = [flat(part) for part in columns(sparse, self.merged.n_tables)]
        return list(self.merged([indices for indices, _ in pairs], [offsets for _, offsets in pairs]))


def _named_as_before(module: Any, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    """Save the tables under their old names, in fp32: the update keeps the lower halves of bf16 tables separately."""
    del metadata
    for number in range(module.merged.n_tables):
        table = state.pop(f"{prefix}merged.weights.{number}")
        if module.updated_by and table.dtype == torch.bfloat16:
            table = torch.ops.torch_ipex.cat_bfloat16_float(table, module.merged.adagrad_args.bf16_trail[number])
        state[f"{prefix}{number}.weight"] = table


class FusedInteraction(nn.Module):  # type: ignore[misc]
    """The dot products of all pairs of vectors in one kernel."""

    def forward(self, vectors: list[Any]) -> Any:
        return interaction(*vectors)


def tune(network: Any) -> Any:
    return _tuned(network, MergedEmbeddingBag.from_embeddingbag_list(network.bags))


def tune_for_training(network: Any, bench: Workbench) -> Any:
    """Return the network for training. Tables update themselves if the fused update equals the case's optimizer.

    They do not in data-parallel training, where each process would update its own copy, or with accumulated batches.
    """
    name = bench.knob("optimizer")
    if name != "adagrad" or bench.mode.data_parallel or bench.knob("accumulate") != "1":
        return tune(network)
    rate = optimizers.rate(name, bench.model)
    merged = MergedEmbeddingBagWithAdaGrad.from_embeddingbag_list(network.bags, lr=rate)
    if bench.case.dtype == "bf16":
        # `ipex.optimize` casts the tables without adapting their update, which then fails.
        with torch.no_grad():
            merged.to_bfloat16_train()
    return _tuned(network, merged)


def _tuned(network: Any, merged: Any) -> Any:
    network.bags, network.interaction = MergedBags(merged), FusedInteraction()
    return network
