"""Prefill: read all tokens of a prompt at once into the key-value cache. Items are tokens."""

from __future__ import annotations

from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Cell, Mode, Session, Stack, Tensors, Workbench
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.modes import _generation, _input
from ipexperf.bench.modes._generation import GenerationSession
from ipexperf.bench.modes._operator import OperatorSession


class PrefillSession(GenerationSession):
    """A step reads a batch of prompts into one cache, overwriting its content."""

    def forward(self, inputs: Tensors) -> Any:
        return self.read(inputs[0], self.memories[0])

    def items(self, batch: int) -> int:
        return batch * self.bench.case.size


class OperatorPrefill(OperatorSession, PrefillSession):
    """The same for an operator alone."""


class Prefill(Mode):
    name = "prefill"
    family = "prefill"
    kind = "reading prompts"
    by_tokens = True
    knobs = (*_generation.KNOBS, *_input.KNOBS)

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        del facts
        return _generation.why_not(cell)

    def script(self, cell: Cell, stack: Stack) -> tuple[str, ...]:
        return _generation.script(cell, stack)

    def open(self, bench: Workbench) -> Session:
        return OperatorPrefill(bench) if bench.model.operator_of else PrefillSession(bench)


registry.modes.add("prefill", Prefill())
