"""The decoder of the Llama and Qwen families in plain PyTorch, with a key-value cache. Imported when it is built.

It computes the same as `LlamaForCausalLM` and `Qwen2ForCausalLM` of `transformers`, which a test shows with the same
weights. It is written out here because comparisons across versions need the same code in every environment, also in
those without `transformers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ipexperf.zoo.models._cache import Begin, LayerCache, begin_of
from ipexperf.zoo.models._gpt import DEVIATION
from ipexperf.zoo.models._shape import Shape


class Norm(nn.Module):  # type: ignore[misc] # torch has no types here
    """Division by the root mean square, in at least fp32."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(width)), epsilon

    def forward(self, hidden: Any) -> Any:
        exact = hidden.to(torch.promote_types(hidden.dtype, torch.float32))
        exact = exact * torch.rsqrt(exact.pow(2).mean(-1, keepdim=True) + self.epsilon)
        return self.weight * exact.to(hidden.dtype)


class Attention(nn.Module):  # type: ignore[misc]
    """Causal attention whose heads share keys and values in groups."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.query = nn.Linear(shape.width, shape.heads * shape.head, bias=shape.bias)
        self.key = nn.Linear(shape.width, shape.key_heads * shape.head, bias=shape.bias)
        self.value = nn.Linear(shape.width, shape.key_heads * shape.head, bias=shape.bias)
        self.out = nn.Linear(shape.heads * shape.head, shape.width, bias=False)

    def forward(self, hidden: Any, angles: tuple[Any, Any], cache: LayerCache | None = None, begin: Begin = 0) -> Any:
        query, key, value = (
            part(hidden).unflatten(2, (-1, self.shape.head)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        return self.out(attend(rotated(query, *angles), rotated(key, *angles), value, cache, begin))


def attend(query: Any, key: Any, value: Any, cache: LayerCache | None, begin: Begin) -> Any:
    """Return the attention of queries over keys and values, and over the cached ones before them."""
    if cache is not None:
        key, value = cache.add(key, value, begin)
    texts, heads, tokens, width = query.shape
    group = heads // key.shape[1]
    if tokens == 1:
        # The heads of a group share their keys: one attention with several queries needs no copies.
        query = query.reshape(texts, -1, group, width)
        mask = None if isinstance(begin, int) else begin.mask
        attended = nn.functional.scaled_dot_product_attention(query, key, value, mask)
        return attended.reshape(texts, 1, -1)
    key, value = (part.repeat_interleave(group, 1) for part in (key, value))
    attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return attended.transpose(1, 2).flatten(2)


def rotated(vectors: Any, cosine: Any, sine: Any) -> Any:
    """Encode positions: rotate pairs of elements, each by its angle."""
    first, second = vectors.chunk(2, -1)
    return vectors * cosine + torch.cat((-second, first), -1) * sine


class Layer(nn.Module):  # type: ignore[misc]
    """Attention and a gated pair of linear layers, each with normalised input and a residual connection."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm, self.last_norm = Norm(shape.width, shape.epsilon), Norm(shape.width, shape.epsilon)
        self.attention = Attention(shape)
        self.gate = nn.Linear(shape.width, shape.inner, bias=False)
        self.up = nn.Linear(shape.width, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, hidden: Any, angles: tuple[Any, Any], cache: LayerCache | None = None, begin: Begin = 0) -> Any:
        hidden = hidden + self.attention(self.norm(hidden), angles, cache, begin)
        normal = self.last_norm(hidden)
        return hidden + self.down(nn.functional.silu(self.gate(normal)) * self.up(normal))


class Decoder(nn.Module):  # type: ignore[misc]
    """Predicts the next token after each token."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList([Layer(shape) for _ in range(shape.layers)])
        self.norm = Norm(shape.width, shape.epsilon)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=DEVIATION)
        if shape.tied:
            self.head.weight = self.tokens.weight

    def forward(self, tokens: Any, caches: list[LayerCache] | None = None, begin: Any = 0) -> Any:
        """With `caches`, the tokens follow the cached ones: several at the beginning, then one at a time.

        As a tensor with a position for each text, `begin` may differ in each call of a graph.
        """
        hidden = self.tokens(tokens)
        places = begin_of(begin, caches)
        angles = self.angles(hidden, places, tokens.shape[1])
        memories: Sequence[LayerCache | None] = caches or [None] * len(self.layers)
        for layer, memory in zip(self.layers, memories, strict=True):
            hidden = layer(hidden, angles, memory, places)
        return self.head(self.norm(hidden))

    def angles(self, like: Any, begin: Begin, count: int) -> tuple[Any, Any]:
        """Return cosine and sine of each position's angles, computed in at least fp32."""
        exact = torch.promote_types(like.dtype, torch.float32)
        pairs = torch.arange(0, self.shape.head, 2, dtype=exact, device=like.device)
        if isinstance(begin, int):
            places = torch.arange(begin, begin + count, dtype=exact, device=like.device)
        else:
            places = begin.at[:, None, None].to(exact)  # shape: texts, heads, tokens (one)
        turns = places[..., None] * self.shape.theta ** (-pairs / self.shape.head)
        turns = torch.cat((turns, turns), -1)
        return turns.cos().to(like.dtype), turns.sin().to(like.dtype)

    def memory(self, positions: int | None = None) -> list[LayerCache]:
        """Return an empty key-value cache for one batch of texts of at most so many tokens, or of the longest."""
        return [LayerCache(positions or self.shape.positions) for _ in self.layers]
