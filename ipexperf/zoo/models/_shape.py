"""The shape of a decoder. It needs no torch, so that models and their operators can be declared by it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """The configuration of a decoder."""

    layers: int
    width: int
    heads: int
    key_heads: int
    """Heads of keys and values. Each serves `heads / key_heads` heads of queries."""
    inner: int
    """Width between the two linear layers behind attention."""
    vocabulary: int
    positions: int
    theta: float = 10_000.0
    """Base of the rotation that encodes positions."""
    epsilon: float = 1e-5
    bias: bool = False
    """True if queries, keys and values have a bias, as in Qwen."""
    tied: bool = True
    """True if the head shares its weights with the embedding."""

    @property
    def head(self) -> int:
        """Width of a head."""
        return self.width // self.heads
