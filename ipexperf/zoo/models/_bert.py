"""BERT in plain PyTorch: an encoder and a classifier. Imported when it is built.

It has no dropout, so that the losses of two trainings can be compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ipexperf.zoo.models._gpt import begin

VOCABULARY = 30522
POSITIONS = 512
EPSILON = 1e-12
MASKED = -10000.0
"""Added to the attention scores of padding, as in the original. Large enough in any dtype."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The size and parts of an encoder."""

    layers: int
    width: int
    heads: int
    kinds: int = 2
    """The number of token types. DistilBERT has none."""
    pooler: bool = True
    """True if there is a layer between the mean of all tokens and the classifier. Sentence transformers have none."""
    classes: int = 2


class Embeddings(nn.Module):  # type: ignore[misc] # torch has no types here
    """Embeddings of tokens and positions. All tokens have the first type."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, shape.width)
        self.positions = nn.Embedding(POSITIONS, shape.width)
        self.kinds = nn.Embedding(shape.kinds, shape.width) if shape.kinds else None
        self.norm = nn.LayerNorm(shape.width, eps=EPSILON)

    def forward(self, tokens: Any) -> Any:
        embedded = self.words(tokens) + self.positions.weight[: tokens.shape[1]]
        if self.kinds is not None:
            embedded = embedded + self.kinds.weight[0]
        return self.norm(embedded)


class Attention(nn.Module):  # type: ignore[misc]
    """Multi-head attention, written out like the original."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.scale = shape.heads, math.sqrt(shape.width // shape.heads)
        self.query, self.key, self.value, self.out = (nn.Linear(shape.width, shape.width) for _ in range(4))

    def forward(self, hidden: Any, mask: Any) -> Any:
        query, key, value = (self._split(part(hidden)) for part in (self.query, self.key, self.value))
        scores = torch.matmul(query, key.transpose(-1, -2)) / self.scale
        attended = torch.matmul(torch.softmax(scores + mask, dim=-1), value)
        return self.out(attended.permute(0, 2, 1, 3).flatten(2))

    def _split(self, hidden: Any) -> Any:
        """Reshape to examples, heads, tokens, width of a head."""
        return hidden.unflatten(2, (self.heads, -1)).permute(0, 2, 1, 3)


class Layer(nn.Module):  # type: ignore[misc]
    """Attention and two linear layers, each with a residual connection and normalisation."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention = Attention(shape)
        self.norm = nn.LayerNorm(shape.width, eps=EPSILON)
        self.up, self.down = nn.Linear(shape.width, 4 * shape.width), nn.Linear(4 * shape.width, shape.width)
        self.last_norm = nn.LayerNorm(shape.width, eps=EPSILON)

    def forward(self, hidden: Any, mask: Any) -> Any:
        hidden = self.norm(hidden + self.attention(hidden, mask))
        return self.last_norm(hidden + self.down(nn.functional.gelu(self.up(hidden))))


class Bert(nn.Module):  # type: ignore[misc]
    """Classifies texts by the mean of all tokens. Inputs are token ids and their mask."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embeddings = Embeddings(shape)
        self.layers = nn.ModuleList([Layer(shape) for _ in range(shape.layers)])
        self.pooler = nn.Linear(shape.width, shape.width) if shape.pooler else None
        self.classifier = nn.Linear(shape.width, shape.classes)
        self.apply(begin)

    def features(self, tokens: Any, mask: Any) -> Any:
        """Return the input of the last layer for each text."""
        real_tokens = mask.to(self.embeddings.norm.weight.dtype)
        added = (1.0 - real_tokens[:, None, None, :]) * MASKED
        hidden = self.embeddings(tokens)
        for layer in self.layers:
            hidden = layer(hidden, added)
        mean = (hidden * real_tokens[:, :, None]).sum(1) / real_tokens.sum(1, keepdim=True)
        return mean if self.pooler is None else torch.tanh(self.pooler(mean))

    def forward(self, tokens: Any, mask: Any) -> Any:
        return self.classifier(self.features(tokens, mask))
