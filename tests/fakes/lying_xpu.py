"""A fake card that lies in the ways real ones do: each lie is an attribute, and none is told by default.

On top of `fake_xpu`, whose card is honest. The messages are those that Intel's runtime prints.
"""

from __future__ import annotations

import math
from typing import Any

import fake_xpu
import torch
from fake_card import OnCard, inner_of
from torch.utils._pytree import tree_leaves

LATE = "level_zero backend failed with error: 40 (UR_RESULT_ERROR_OUT_OF_RESOURCES)"
"""What a kernel that failed in the queue is told with, where somebody waits for it."""


class Event(fake_xpu.Event):
    """A mark in the queue whose clock may count in another unit."""

    card: LyingXpu

    def elapsed_time(self, end_event: fake_xpu.Event) -> float:
        return super().elapsed_time(end_event) * self.card.unit


class LyingXpu(fake_xpu.FakeXpu):
    """A card that can be told to lie."""

    event = Event

    def __init__(self, count: int = 1) -> None:
        super().__init__(count)
        self.fails_at: float = math.inf
        """The operator with arithmetic that fails in the queue: nobody hears of it before somebody waits."""
        self.vanishes_at: float = math.inf
        """The operator with arithmetic from which on the card is gone."""
        self.fragments = 0
        """Bytes of its reserve that each operator with arithmetic makes useless."""
        self.compiles = 0.0
        """Seconds for which the host makes each kernel when it first meets operands of these shapes."""
        self.unit = 1.0
        """Of the clock behind timing events."""
        self.remembers: set[str] = set()
        """Operators that it computes once for operands of the same shapes; later it hands out what it had."""
        self.forgets: set[str] = set()
        """Operators that it leaves out: they hand on their first operand."""
        self.arithmetic = 0
        self._doomed = False
        self._kernels: set[tuple[Any, ...]] = set()
        self._answers: dict[tuple[Any, ...], Any] = {}

    def _wait(self) -> None:
        super()._wait()
        if self._doomed:
            raise RuntimeError(LATE)

    def run(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = func.name().partition("::")[2].partition(".")[0]
        shapes = tuple(tuple(leaf.shape) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor))
        if name in fake_xpu.ARITHMETIC:
            self._count()
        if self.compiles and (name, shapes) not in self._kernels:
            self._kernels.add((name, shapes))
            self.clock.now += self.compiles
        if name in self.forgets:
            self.busy(fake_xpu.LIGHT)
            return next(leaf for leaf in tree_leaves(args) if isinstance(leaf, OnCard))
        if name in self.remembers and (name, shapes) in self._answers:
            self.busy(fake_xpu.HEAVY)
            return self.wrap(self._answers[name, shapes].clone())
        out = super().run(func, args, kwargs)
        if name in self.remembers:
            self._answers[name, shapes] = inner_of(out)
        return out

    def _count(self) -> None:
        """One more operator with arithmetic: what it sets off comes to light here or later."""
        self.arithmetic += 1
        if self.arithmetic >= self.vanishes_at:
            self.lost, self.count = True, 0
        self._doomed = self._doomed or self.arithmetic >= self.fails_at
        self.reserved += self.fragments
        if self.reserved > self.properties.total_memory:
            useless = (self.reserved - self.held) / 2**20
            raise torch.OutOfMemoryError(
                "XPU out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of "
                f"{self.properties.total_memory / 2**30:.2f} GiB. Of the allocated memory {self.held / 2**20:.2f} MiB "
                f"is allocated by PyTorch, and {useless:.2f} MiB is reserved by PyTorch but unallocated."
            )
