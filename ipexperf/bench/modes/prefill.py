"""Prefill: read all tokens of a prompt at once into the key-value cache. Items are tokens."""

from __future__ import annotations

from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Session, Workbench
from ipexperf.bench.model import Tensors
from ipexperf.bench.modes import _generation, _input
from ipexperf.bench.modes._generation import GenerationMode, GenerationSession


class PrefillSession(GenerationSession):
    """A step reads a batch of prompts into one cache, overwriting its content."""

    def forward(self, inputs: Tensors) -> Any:
        return self.read(inputs[0], self.memories[0])

    def items(self, batch: int) -> int:
        return batch * self.bench.case.size


class Prefill(GenerationMode):
    name = "prefill"
    family = "prefill"
    kind = "reading prompts"
    knobs = (*_generation.KNOBS, *_input.KNOBS)

    def open(self, bench: Workbench) -> Session:
        return PrefillSession(bench)


registry.modes.add("prefill", Prefill())
