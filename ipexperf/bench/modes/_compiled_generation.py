"""The common base of prefill_compile and decode_compile: a decoder whose steps are one graph of torch.compile.

A graph has fixed shapes. So attention of a token sees the whole key-value cache, with a mask over what comes later, and
the cache is as long as the texts. What is read besides the steps, such as the prompt before decoding, is read eagerly.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from ipexperf.bench.model import Tensors
from ipexperf.bench.modes._compiled import CompiledMode, CompiledSession
from ipexperf.bench.modes._generation import (
    PACKED,
    GenerationMode,
    GenerationSession,
    tokens_of_layers,
    tokens_read,
)
from ipexperf.proof import label
from ipexperf.result import Check

FIRST_INPUT = {
    "aten::addmm": 1,
    "aten::mm": 0,
    "aten::_weight_int8pack_mm": 0,
    "aten::_weight_int4pack_mm_for_cpu": 0,
    "torchao::da8w4_linear_cpu": 0,
    "mkl::_mkl_linear": 0,
    "mkldnn::_linear_pointwise": 0,
}
"""Operators that a linear layer becomes in compiled code, and which of their arguments has a row for each token."""


class CompiledGenerationMode(CompiledMode, GenerationMode):
    """What prefill_compile and decode_compile share."""


class CompiledGeneration(CompiledSession, GenerationSession):
    """A decoder that reads and decodes through compiled code wherever the shapes are those of a step."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The texts and the tokens of each that a step reads."""

    def build(self, network: Any, example: Tensors) -> Any:
        if self.weights in PACKED:
            network = self.bench.stack.weight_only(network, example, self.bench)
        return super().build(network, example)

    @property
    def arguments(self) -> int:
        """The tokens, and the keys and values of each layer."""
        return 1 + 2 * len(self.network.memory())

    def new_memory(self) -> list[Any]:
        memory: list[Any] = self.network.memory(self.bench.case.size)
        return memory

    def read(self, tokens: Any, memory: Any = None, begin: Any = 0) -> Any:
        if memory is None or tokens.shape != self.shape:
            return self.called(self.network._orig_mod, tokens, memory, begin)  # noqa: SLF001 - documented by torch
        return self.called(self.network, tokens, memory, self.place(begin))

    def place(self, begin: int) -> Any:
        """Return the position of a step's first token, as the compiled code takes it."""
        return begin

    def tokens_counted(self) -> Check:
        rows = rows_of_products(self.events)
        if rows:
            return tokens_read(rows, self.tokens)
        # max_autotune may write a kernel of its own for each linear layer, and a trace names none of them. So count in
        # the module that was compiled: other checks say that a step is one call of its one graph.
        module, (texts, length) = self.network._orig_mod, self.shape  # noqa: SLF001 - documented by torch
        tokens, memory = self.inputs[0][0][:texts, :length], self.new_memory()
        counts = tokens_of_layers(module, lambda: self.called(module, tokens, memory, self.place(0)))
        return tokens_read(counts, self.tokens, "linear layers of the compiled module")

    def proof(self) -> list[Check]:
        # Both the stack's evidence of packed weights and that of its code say which software is in the process.
        return list({check.name: check for check in super().proof()}.values())

    def _optimised(self) -> list[Check]:
        """Return evidence of packed weights. The rest of the stack's evidence comes with that of the code."""
        return super()._optimised() if self.weights in PACKED else []


def rows_of_products(events: Iterable[dict[str, Any]]) -> list[int]:
    """Return how many tokens each linear layer got, given the trace of a step of compiled code."""
    rows = []
    for event in events:
        place = FIRST_INPUT.get(str(event.get("name")))
        if place is not None and "Input Dims" in event.get("args", {}):
            rows.append(math.prod(label.arguments(event)["Input Dims"][place][:-1]))
    return rows
