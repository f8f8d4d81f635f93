"""Decoding through torch.compile: `decode`, whose every token is one call of one compiled graph."""

from __future__ import annotations

from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Session, Workbench
from ipexperf.bench.lazy import torch
from ipexperf.bench.model import Tensors
from ipexperf.bench.modes._compiled_generation import CompiledGeneration, CompiledGenerationMode
from ipexperf.bench.modes.decode import Decode, DecodeSession


class CompiledDecodeSession(CompiledGeneration, DecodeSession):
    """Prompts are read eagerly. The graph is given the position of the token as a tensor, so that it may move on."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.bench.case.batch, 1

    @property
    def arguments(self) -> int:
        return super().arguments + 1

    def place(self, begin: int) -> Any:
        return torch.full((self.bench.case.batch,), begin, device=self.bench.case.device)

    def call_first(self, example: Tensors) -> None:
        (tokens,), memory = example, self.new_memory()
        self.read(tokens[:, : self.prompt], memory)
        self.read(tokens[:, self.prompt : self.prompt + 1], memory, self.prompt)


class DecodeCompile(CompiledGenerationMode, Decode):
    name = "decode_compile"
    plain = "decode"

    def open(self, bench: Workbench) -> Session:
        return CompiledDecodeSession(bench)


registry.modes.add("decode_compile", DecodeCompile())
