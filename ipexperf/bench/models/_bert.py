"""BERT in plain PyTorch: an encoder, and a layer that tells classes apart. Imported when it is built.

Without dropout: a training can then be held against another one, loss by loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

VOCABULARY = 30522
POSITIONS = 512
DEVIATION = 0.02
"""Of the weights that nobody has trained, as the original has it."""
EPSILON = 1e-12
MASKED = -10000.0
"""Added to the score of a token that is filled up, as the original has it: far enough off in any dtype."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How large an encoder is, and which parts it has."""

    layers: int
    width: int
    heads: int
    kinds: int = 2
    """Kinds of texts that have an embedding: DistilBERT has none."""
    pooler: bool = True
    """Whether a layer stands between the mean of all tokens and the classes: a sentence transformer has none."""
    classes: int = 2


class Embeddings(nn.Module):  # type: ignore[misc] # torch has no types here
    """What a token is and where it stands. All texts are of the first kind."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, shape.width)
        self.positions = nn.Embedding(POSITIONS, shape.width)
        self.kinds = nn.Embedding(shape.kinds, shape.width) if shape.kinds else None
        self.norm = nn.LayerNorm(shape.width, eps=EPSILON)

    def forward(self, tokens: Any) -> Any:
        found = self.words(tokens) + self.positions.weight[: tokens.shape[1]]
        if self.kinds is not None:
            found = found + self.kinds.weight[0]
        return self.norm(found)


class Attention(nn.Module):  # type: ignore[misc]
    """Several heads, each a softmax over all tokens; written out as the original is."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.scale = shape.heads, math.sqrt(shape.width // shape.heads)
        self.query, self.key, self.value, self.out = (nn.Linear(shape.width, shape.width) for _ in range(4))

    def forward(self, hidden: Any, mask: Any) -> Any:
        query, key, value = (self._split(part(hidden)) for part in (self.query, self.key, self.value))
        scores = torch.matmul(query, key.transpose(-1, -2)) / self.scale
        found = torch.matmul(torch.softmax(scores + mask, dim=-1), value)
        return self.out(found.permute(0, 2, 1, 3).flatten(2))

    def _split(self, hidden: Any) -> Any:
        """Examples, heads, tokens, width of a head."""
        return hidden.unflatten(2, (self.heads, -1)).permute(0, 2, 1, 3)


class Layer(nn.Module):  # type: ignore[misc]
    """Attention and two linear layers, each added to what it was given and normalised."""

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
    """Tokens and their mask in, a number for each class out: the mean of all tokens is what is looked at."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embeddings = Embeddings(shape)
        self.layers = nn.ModuleList([Layer(shape) for _ in range(shape.layers)])
        self.pooler = nn.Linear(shape.width, shape.width) if shape.pooler else None
        self.classifier = nn.Linear(shape.width, shape.classes)
        self.apply(_begin)

    def features(self, tokens: Any, mask: Any) -> Any:
        """What the last layer is given of each text."""
        kept = mask.to(self.embeddings.norm.weight.dtype)
        added = (1.0 - kept[:, None, None, :]) * MASKED
        hidden = self.embeddings(tokens)
        for layer in self.layers:
            hidden = layer(hidden, added)
        mean = (hidden * kept[:, :, None]).sum(1) / kept.sum(1, keepdim=True)
        return mean if self.pooler is None else torch.tanh(self.pooler(mean))

    def forward(self, tokens: Any, mask: Any) -> Any:
        return self.classifier(self.features(tokens, mask))


def _begin(module: Any) -> None:
    """The weights that a part begins with."""
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=DEVIATION)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)


NAMES = (
    ("embeddings.word_embeddings.", "embeddings.words."),
    ("embeddings.position_embeddings.", "embeddings.positions."),
    ("embeddings.token_type_embeddings.", "embeddings.kinds."),
    ("embeddings.LayerNorm.", "embeddings.norm."),
    ("encoder.layer.", "layers."),
    ("attention.self.", "attention."),
    ("attention.output.dense.", "attention.out."),
    ("attention.output.LayerNorm.", "norm."),
    ("intermediate.dense.", "up."),
    ("output.dense.", "down."),
    ("output.LayerNorm.", "last_norm."),
)
"""What the published checkpoints call a part, and what it is called here; in this order."""


def renamed(published: dict[str, Any]) -> dict[str, Any]:
    """The weights of a published encoder by the names here. Its own pooler is none of a sentence transformer."""
    found = {}
    for name, value in published.items():
        if name.startswith("pooler.") or name.endswith("position_ids"):
            continue
        new = name
        for theirs, ours in NAMES:
            new = new.replace(theirs, ours)
        found[new] = value
    return found
