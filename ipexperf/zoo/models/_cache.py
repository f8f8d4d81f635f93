"""The key-value cache of decoders, and the places of a batch's tokens in it. Imported with the networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Places:
    """Positions of one further token of each text that a compiled graph reads, whichever they are."""

    at: Any
    """The position of each text's token."""
    rows: Any
    """The row of each text in the cache."""
    end: int
    """The last of these positions plus 1."""
    mask: Any
    """The mask of attention: the cached tokens that each text has."""

    @classmethod
    def before(cls, end: int, at: Any) -> Places:
        """Return places anywhere before `end`, so that a compiled graph serves all of them."""
        mask = torch.arange(end, device=at.device) <= at[:, None]
        return cls(at, torch.arange(len(at), device=at.device), end, mask[:, None, None])


Begin = int | Places
"""The position where the tokens of a batch begin: one for all texts, or one for each."""


def begin_of(begin: Any, caches: Sequence[LayerCache] | None) -> Begin:
    """Return where tokens begin, given one position for all texts, or a tensor of them.

    With a tensor, attention sees the whole cache, and its mask hides what comes later.
    """
    return Places.before(caches[0].positions, begin) if caches and not isinstance(begin, int) else begin


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
            self.keys, self.values = (part.new_zeros(texts, heads, self.positions, width) for part in (key, value))
        if isinstance(begin, int):
            end = begin + key.shape[2]
            self.keys[:texts, :, begin:end], self.values[:texts, :, begin:end] = key, value
        else:
            end = begin.end
            self.keys[begin.rows, :, begin.at], self.values[begin.rows, :, begin.at] = key[:, :, 0], value[:, :, 0]
        return self.keys[:texts, :, :end], self.values[:texts, :, :end]
