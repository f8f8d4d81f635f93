"""A small decoder in plain PyTorch on bytes, with a key-value cache. Imported when it is built.

It has no dropout, so that the losses of two trainings can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from ipexperf.zoo.models._cache import Begin, LayerCache, begin_of

BYTES = 256
DEVIATION = 0.02


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a decoder."""

    layers: int
    width: int
    heads: int
    positions: int


class Attention(nn.Module):  # type: ignore[misc] # torch has no types here
    """Causal attention."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.inside = nn.Linear(shape.width, 3 * shape.width)
        self.out = nn.Linear(shape.width, shape.width)

    def forward(self, hidden: Any, cache: LayerCache | None = None, begin: Begin = 0) -> Any:
        parts = self.inside(hidden).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query, key, value = parts[0], parts[1], parts[2]
        if cache is not None:
            key, value = cache.add(key, value, begin)
        # After a prompt, tokens come one at a time and attend to all cached ones.
        mask = None if isinstance(begin, int) else begin.mask
        attended = nn.functional.scaled_dot_product_attention(query, key, value, mask, is_causal=begin == 0)
        return self.out(attended.permute(0, 2, 1, 3).flatten(2))


class Layer(nn.Module):  # type: ignore[misc]
    """Attention and two linear layers, each with normalised input and a residual connection."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm, self.last_norm = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
        self.attention = Attention(shape)
        self.up, self.down = nn.Linear(shape.width, 4 * shape.width), nn.Linear(4 * shape.width, shape.width)

    def forward(self, hidden: Any, cache: LayerCache | None = None, begin: Begin = 0) -> Any:
        hidden = hidden + self.attention(self.norm(hidden), cache, begin)
        return hidden + self.down(nn.functional.gelu(self.up(self.last_norm(hidden))))


class Gpt(nn.Module):  # type: ignore[misc]
    """Predicts the next byte after each byte."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.tokens, self.positions = nn.Embedding(BYTES, shape.width), nn.Embedding(shape.positions, shape.width)
        self.layers = nn.ModuleList([Layer(shape) for _ in range(shape.layers)])
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, BYTES, bias=False)
        self.apply(begin)

    def forward(self, tokens: Any, caches: list[LayerCache] | None = None, begin: Any = 0) -> Any:
        """With `caches`, the tokens follow the cached ones: several at the beginning, then one at a time.

        As a tensor with a position for each text, `begin` may differ in each call of a graph.
        """
        places = begin_of(begin, caches)
        if isinstance(places, int):
            positions = self.positions.weight[places : places + tokens.shape[1]]
        else:
            positions = self.positions(places.at)[:, None]
        hidden = self.tokens(tokens) + positions
        memories: Sequence[LayerCache | None] = caches or [None] * len(self.layers)
        for layer, memory in zip(self.layers, memories, strict=True):
            hidden = layer(hidden, memory, places)
        return self.head(self.norm(hidden))

    def memory(self, positions: int | None = None) -> list[LayerCache]:
        """Return an empty key-value cache for one batch of texts of at most so many tokens, or of the longest."""
        return [LayerCache(positions or self.shape.positions) for _ in self.layers]


def begin(module: Any) -> None:
    """Initialise the weights of a module."""
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=DEVIATION)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
