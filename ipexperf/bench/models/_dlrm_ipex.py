"""What IPEX has of its own for DLRM: one kernel for all tables, and one for the interaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from intel_extension_for_pytorch.nn.functional import interaction
from intel_extension_for_pytorch.nn.modules import MergedEmbeddingBag, MergedEmbeddingBagWithAdaGrad
from torch import nn

from ipexperf.bench.models._dlrm import columns, flat
from ipexperf.bench.modes import _optimizers

if TYPE_CHECKING:
    from ipexperf.bench.workbench import Workbench


class MergedBags(nn.Module):  # type: ignore[misc] # torch has no types here
    """All tables in one of IPEX's modules, under the names that they have in the untouched network."""

    def __init__(self, merged: Any) -> None:
        super().__init__()
        self.merged = merged
        self.register_state_dict_post_hook(_named_as_before)

    @property
    def updated_by(self) -> str:
        """What updates the tables in its own backward, if anything does: then no optimizer has a part in it."""
        kind = type(self.merged)
        return kind.__name__ if kind is MergedEmbeddingBagWithAdaGrad else ""

    def forward(self, sparse: Any) -> list[Any]:
        pairs = [flat(part) for part in columns(sparse, self.merged.n_tables)]
        return list(self.merged([indices for indices, _ in pairs], [offsets for _, offsets in pairs]))


def _named_as_before(module: Any, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    del metadata
    for number in range(module.merged.n_tables):
        state[f"{prefix}{number}.weight"] = state.pop(f"{prefix}merged.weights.{number}")


class FusedInteraction(nn.Module):  # type: ignore[misc]
    """The products of all pairs of vectors in one kernel."""

    def forward(self, vectors: list[Any]) -> Any:
        return interaction(*vectors)


def tune(network: Any) -> Any:
    """The network for inference."""
    return _tuned(network, MergedEmbeddingBag.from_embeddingbag_list(network.bags))


def tune_for_training(network: Any, bench: Workbench) -> Any:
    """The network for training. Tables update themselves where that is what the case's optimizer would do.

    Each of several processes would update its own, and each of several batches at once: there they do not.
    """
    name = bench.knob("optimizer")
    if name != "adagrad" or bench.case.mode != "train" or bench.knob("accumulate") != "1":
        return tune(network)
    rate = _optimizers.rate(name, bench.model)
    return _tuned(network, MergedEmbeddingBagWithAdaGrad.from_embeddingbag_list(network.bags, lr=rate))


def _tuned(network: Any, merged: Any) -> Any:
    network.bags, network.interaction = MergedBags(merged), FusedInteraction()
    return network
