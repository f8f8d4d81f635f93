"""The key-value cache of decoders, and the places of a batch's tokens in it. Imported with the networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Places:
    """Positions of one further token of each text, if the texts differ in length."""

    at: Any
    """The position of each text's token."""
    rows: Any
    """The row of each text in the cache."""
    end: int
    """The last of these positions plus 1."""
    mask: Any
    """The mask of attention: the cached tokens that each text has."""

    @classmethod
    def of(cls, begins: Sequence[int], device: Any) -> Places:
        at, end = torch.tensor(begins, device=device), max(begins) + 1
        return cls.before(end, at)

    @classmethod
    def before(cls, end: int, at: Any) -> Places:
        """Return places anywhere before `end`, so that a compiled graph serves all of them."""
        mask = torch.arange(end, device=at.device) <= at[:, None]
        return cls(at, torch.arange(len(at), device=at.device), end, mask[:, None, None])


Begin = int | Places
"""The position where the tokens of a batch begin: one for all texts, or one for each."""


def begin_of(begin: Any, caches: Sequence[LayerCache] | None, device: Any) -> Begin:
    """Return where tokens begin, given one position for all texts, a list with one for each, or a tensor of them.

    With a tensor, attention sees the whole cache, and its mask hides what comes later.
    """
    if isinstance(begin, int):
        return begin
    if isinstance(begin, torch.Tensor) and caches:
        return Places.before(caches[0].positions, begin)
    return Places.of(begin, device)


class LayerCache:
    """The key-value cache of one layer, allocated for a whole text and filled as it is read."""

    def __init__(self, positions: int) -> None:
        self.positions = positions
        self.keys: Any = None
        self.values: Any = None

    def add(self, key: Any, value: Any, begin: Begin) -> tuple[Any, Any]:
        """Store keys and values of further tokens, and return those of all tokens up to them."""
        texts = len(key)
        if self.keys is None:
            _, heads, _, width = key.shape
            self.keys, self.values = (x.new_zeros(texts, heads, self.positions, width) for x in (key, value))
        if isinstance(begin, int):
            end = begin + key.shape[2]
            self.keys[:texts, :, begin:end], self.values[:texts, :, begin:end] = key, value
        else:
            end = begin.end
            self.keys[begin.rows, :, begin.at], self.values[begin.rows, :, begin.at] = key[:, :, 0], value[:, :, 0]
        return self.keys[:texts, :, :end], self.values[:texts, :, :end]

    def row(self, number: int) -> LayerCache:
        """Return the cache of one text, which shares memory with this one."""
        part = LayerCache(self.positions)
        part.keys, part.values = self.keys[number : number + 1], self.values[number : number + 1]
        return part

    def move(self, source: int, target: int, tokens: int) -> None:
        """Copy the tokens of one text to the row of another."""
        for part in (self.keys, self.values):
            part[target, :, :tokens] = part[source, :, :tokens]
