"""Writing: one token of each text at a time, behind the kept keys and values of those before it. Its items are tokens.

The tokens are those of held-out texts, whatever the network foretells: every stack then does the same work, and each
answer can be held against the reference.
"""

from __future__ import annotations

from typing import Any

from ipexperf.bench import registry, work
from ipexperf.bench.facts import Facts
from ipexperf.bench.kinds import Cell, Mode, Session
from ipexperf.bench.lazy import torch
from ipexperf.bench.modes import _generation
from ipexperf.bench.modes._generation import GenerationSession
from ipexperf.bench.subjects import Tensors
from ipexperf.bench.work import Work
from ipexperf.bench.workbench import Workbench


class DecodeSession(GenerationSession):
    """The first half of each text is read beforehand; steps write the second, and then write it again."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self.turn = 0
        self.memories = [self.network.memory() for _ in self.inputs]
        for (tokens,), memory in zip(self.inputs, self.memories, strict=True):
            self.read(tokens[:, : self.prompt], memory)

    @property
    def prompt(self) -> int:
        """So many tokens of each text are there at the beginning."""
        return self.bench.case.size // 2

    def build(self, network: Any, example: Tensors) -> Any:
        """Made for one token of each text: weights are packed for the shape that they are used with."""
        return super().build(network, (example[0][:, :1],))

    def step(self) -> None:
        """One token of one batch of texts; the batches take turns."""
        further, text = divmod(self.turn, len(self.inputs))
        at = self.prompt + further % (self.bench.case.size - self.prompt)
        self.read(self.inputs[text][0][:, at : at + 1], self.memories[text], at)
        self.turn += 1

    def counted(self) -> Work:
        """What a step has to do that is halfway through its texts: it looks back at all that was read before."""
        network, (tokens,) = self.untouched(), self.example()
        memory, at = network.memory(), (self.prompt + tokens.shape[1]) // 2
        with torch.no_grad():
            network(tokens[:, :at], memory, 0)
            return work.count(lambda: network(tokens[:, at : at + 1], memory, at))

    def forward(self, inputs: Tensors) -> Any:
        """The answers to whole texts, written as a step writes them."""
        (tokens,), memory = inputs, self.network.memory()
        parts = [self.read(tokens[:, : self.prompt], memory)]
        parts += [self.read(tokens[:, at : at + 1], memory, at) for at in range(self.prompt, tokens.shape[1])]
        return torch.cat(parts, 1)


class Decode(Mode):
    name = "decode"
    family = "decode"

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        del facts
        return _generation.why_not(cell)

    def open(self, bench: Workbench) -> Session:
        return DecodeSession(bench)


registry.modes.add("decode", Decode())
