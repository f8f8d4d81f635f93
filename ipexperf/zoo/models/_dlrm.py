"""The network of DLRM in stock PyTorch. Imported when it is built, because its classes need torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn


class Bags(nn.ModuleList):  # type: ignore[misc] # torch has no types here
    """An embedding bag per column of ids. The last one takes all remaining columns and sums their rows."""

    def forward(self, sparse: Any) -> list[Any]:
        bags = []
        for bag, part in zip(self, columns(sparse, len(self)), strict=True):
            numbers, begins = flat(part)
            bags.append(bag(numbers, begins))
        return bags


@torch.fx.wrap  # type: ignore[untyped-decorator, unused-ignore] # torch has no types here
def flat(part: Any) -> tuple[Any, Any]:
    """Return all ids in one contiguous row, as IPEX's kernels need, and the offset of each example.

    IPEX's int8 needs both. torch.fx, used by stock PyTorch's quantisation, cannot trace the count, so it treats this
    function as a leaf.
    """
    begins = torch.arange(0, part.numel(), part.shape[1], device=part.device)
    return part.reshape(-1).contiguous(), begins


def columns(sparse: Any, tables: int) -> list[Any]:
    """Return the ids for each table: one each, and all remaining ones for the last."""
    return [*(sparse[:, table : table + 1] for table in range(tables - 1)), sparse[:, tables - 1 :]]


class Interaction(nn.Module):  # type: ignore[misc]
    """The dot products of all pairs of vectors, after the first vector itself."""

    def __init__(self, vectors: int) -> None:
        super().__init__()
        rows, columns = torch.tril_indices(vectors, vectors, -1)
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("columns", columns, persistent=False)

    def forward(self, vectors: Sequence[Any]) -> Any:
        together = torch.stack(list(vectors), 1)
        products = torch.matmul(together, together.transpose(1, 2))
        return torch.cat([vectors[0], products[:, self.rows, self.columns]], 1)


class Dlrm(nn.Module):  # type: ignore[misc]
    """A bottom MLP for dense inputs, embedding bags for ids, their interaction, and a top MLP."""

    def __init__(self, tables: Sequence[int], dense: int, width: int) -> None:
        super().__init__()
        vectors = len(tables) + 1
        self.bottom = nn.Sequential(nn.Linear(dense, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        self.bags = Bags(nn.EmbeddingBag(rows, width, mode="sum") for rows in tables)
        for bag in self.bags:
            nn.init.normal_(bag.weight, std=0.1)
        self.interaction = Interaction(vectors)
        pairs = vectors * (vectors - 1) // 2
        self.top = nn.Sequential(
            nn.Linear(width + pairs, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, dense: Any, sparse: Any) -> Any:
        vector = self.bottom(dense)
        return self.top(self.interaction([vector, *self.bags(sparse)])).squeeze(1)
