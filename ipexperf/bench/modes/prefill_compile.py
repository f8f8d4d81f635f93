"""Reading prompts through torch.compile: `prefill`, whose every batch of prompts is one call of one compiled graph."""

from __future__ import annotations

from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Session, Workbench
from ipexperf.bench.model import Tensors
from ipexperf.bench.modes._compiled_generation import CompiledGeneration, CompiledGenerationMode
from ipexperf.bench.modes.prefill import Prefill, PrefillSession


class CompiledPrefillSession(CompiledGeneration, PrefillSession):
    """The graph fills a cache that is there already: making it would be another graph."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.bench.case.batch, self.bench.case.size

    def call_first(self, example: Tensors) -> None:
        self.read(example[0], self.new_memory())

    def new_memory(self) -> list[Any]:
        memory = super().new_memory()
        batch = self.bench.case.batch
        self.read(self.inputs[0][0][:, :1].expand(batch, 1), memory)  # makes its tensors
        return memory

    def remember(self, tokens: Any, memory: Any) -> None:
        """Read the whole text, because the graph reads nothing shorter. The last token is then read once more."""
        self.read(tokens, memory)


class PrefillCompile(CompiledGenerationMode, Prefill):
    name = "prefill_compile"
    plain = "prefill"

    def open(self, bench: Workbench) -> Session:
        return CompiledPrefillSession(bench)


registry.modes.add("prefill_compile", PrefillCompile())
