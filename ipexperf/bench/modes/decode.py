"""Decoding: one token of each text at a time, with a key-value cache of those before it. Items are tokens.

The tokens are those of held-out texts, not the predicted ones, so that all stacks do the same work and each output can
be compared with the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.api import Look, Session, Workbench
from ipexperf.bench.device import Device
from ipexperf.bench.lazy import torch
from ipexperf.bench.model import Tensors, tensors
from ipexperf.bench.modes._generation import GenerationMode, GenerationSession
from ipexperf.proof import fingerprint, work
from ipexperf.proof.work import Work


class DecodeSession(GenerationSession):
    """The first half of each text is read in advance. Steps decode the second half, again and again."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self.steps_done = 0

    def caches(self) -> list[Any]:
        """Return a cache for each batch of texts, with their first halves."""
        memories = [self.new_memory() for _ in self.inputs]
        for (tokens,), memory in zip(self.inputs, memories, strict=True):
            self.read(tokens[:, : self.prompt], memory)
        return memories

    @property
    def prompt(self) -> int:
        """Number of tokens of each text in the cache at the beginning."""
        return self.bench.case.size // 2

    def build(self, network: Any, example: Tensors) -> Any:
        """Build with one token of each text as the example, because weights are packed for the shape in use."""
        return super().build(network, (example[0][:, :1],))

    def step(self) -> None:
        """Decode one token of one batch of texts. The batches take turns."""
        further, text = divmod(self.steps_done, len(self.inputs))
        at = self.prompt + further % (self.bench.case.size - self.prompt)
        self.read(self.inputs[text][0][:, at : at + 1], self.memories[text], at)
        self.steps_done += 1

    def looks(self, device: Device) -> Mapping[str, Look]:
        """Look at the first token behind the prompt: with each further one, attention has other shapes."""

        def first() -> None:
            self.steps_done = 0
            self.step()

        return {**super().looks(device), **fingerprint.of_step(first, device)}

    def counted(self) -> Work:
        """Count a step halfway through the texts, because the work depends on the number of cached tokens."""
        network, (tokens,) = self.untouched(), self.example()
        memory, at = network.memory(), (self.prompt + tokens.shape[1]) // 2
        with torch.no_grad():
            network(tokens[:, :at], memory, 0)
            return work.count(lambda: network(tokens[:, at : at + 1], memory, at), network)

    def forward(self, inputs: Tensors) -> Any:
        """Return the outputs for whole texts, decoded token by token like a step."""
        (tokens,), memory = inputs, self.new_memory()
        parts = [self.read(tokens[:, : self.prompt], memory)]
        parts += [self.read(tokens[:, at : at + 1], memory, at) for at in range(self.prompt, tokens.shape[1])]
        return tuple(torch.cat(outputs, 1) for outputs in zip(*map(tensors, parts), strict=True))


class Decode(GenerationMode):
    name = "decode"
    family = "decode"
    kind = "next tokens"

    def open(self, bench: Workbench) -> Session:
        return DecodeSession(bench)


registry.modes.add("decode", Decode())
