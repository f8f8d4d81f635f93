"""The operators of all layers of a decoder, side by side, without the rest of it. Imported when they are built.

They are called like a decoder, with activations in the place of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ipexperf.zoo.models import _decoder
from ipexperf.zoo.models._cache import LayerCache, begin_of
from ipexperf.zoo.models._gpt import DEVIATION
from ipexperf.zoo.models._shape import Shape


class Operators(nn.Module):  # type: ignore[misc] # torch has no types here
    """The modules at some paths in a decoder, from every layer. Each gets the same activations."""

    def __init__(self, shape: Shape, paths: Sequence[str]) -> None:
        super().__init__()
        with torch.device("meta"):  # without memory: only the operators get any
            decoder = _decoder.Decoder(shape)
        modules_by_name = dict(decoder.named_modules())
        ends = [f".{path}" for path in paths]
        modules = [module for name, module in modules_by_name.items() if any(f".{name}".endswith(end) for end in ends)]
        self.parts = nn.ModuleList(module.to_empty(device="cpu") for module in modules)
        for value in self.parameters():
            nn.init.normal_(value, std=DEVIATION)
        self.width = self.parts[0].weight.shape[-1]
        self.register_buffer("like", torch.zeros(()))

    def forward(self, activations: Any, caches: list[LayerCache] | None = None, begin: int = 0) -> tuple[Any, ...]:
        """Run the operators on the activations, converted to the dtype of the weights as the layer before would."""
        del caches, begin
        # A condition on a shape also keeps IPEX from tracing this with torch.fx into a module without `memory`.
        if activations.shape[-1] < self.width:
            raise ValueError(f"{activations.shape[-1]} activations of a token are too few: {self.width} expected")
        inputs = activations[..., : self.width].to(self.like.dtype)
        return tuple(part(inputs) for part in self.parts)

    def memory(self) -> list[LayerCache]:
        """Return an empty list: these operators have no cache."""
        return []


class Attentions(nn.Module):  # type: ignore[misc]
    """The attention of every layer, between its linear layers. Activations hold queries, keys and values."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.widths = [heads * shape.head for heads in (shape.heads, shape.key_heads, shape.key_heads)]
        self.width = sum(self.widths)
        self.register_buffer("like", torch.zeros(()))

    def forward(self, activations: Any, caches: list[LayerCache] | None = None, begin: int = 0) -> tuple[Any, ...]:
        inputs = activations[..., : self.width].to(self.like.dtype)
        query, key, value = (
            part.unflatten(2, (-1, self.shape.head)).transpose(1, 2) for part in inputs.split(self.widths, -1)
        )
        place = begin_of(begin, caches, inputs.device)
        memories: Sequence[LayerCache | None] = caches or [None] * self.shape.layers
        return tuple(_decoder.attend(query, key, value, memory, place) for memory in memories)

    def memory(self) -> list[LayerCache]:
        """Return an empty key-value cache for one batch of texts."""
        return [LayerCache(self.shape.positions) for _ in range(self.shape.layers)]
