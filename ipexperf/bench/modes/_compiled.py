"""The common base of modes that go through torch.compile: compiling afresh, and the proof that a step is that code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipexperf import dtypes
from ipexperf.bench.api import Device, Kernel, Look, Seen, Tensors
from ipexperf.bench.evidence import compilation, fingerprint, proof
from ipexperf.bench.evidence.compilation import Tally
from ipexperf.bench.lazy import torch
from ipexperf.bench.modes._inference import InferenceSession
from ipexperf.result import Check

FRESH = "torch.compile keeps processes and threads that were never tested under a fork"
"""Why launches of these modes are not forked."""


class CompiledSession(InferenceSession):
    """A network whose steps run as code that torch.compile generated in this process."""

    def build(self, network: Any, example: Tensors) -> Any:
        loaded_before, before = compilation.loaded(), Tally.read()
        with compilation.afresh():
            self.network = self.bench.stack.compiled(network, example, self.bench)
            self.call_first(example)
            self.sources = compilation.generated(loaded_before)
        self.compiled = Tally.read()
        self.first = self.compiled.since(before)
        return self.network

    def call_first(self, example: Tensors) -> None:
        """Call the network as a step does. The first call compiles it."""
        self.forward(example)

    @property
    def arguments(self) -> int:
        """Number of tensors that a step gives to the compiled code, if the weights are constants of it."""
        return len(self.held_out.inputs)

    def kernels(self) -> list[Kernel]:
        self.events = proof.traced(self.step)
        kernels = proof.kernels(self.events)
        if dtypes.quantised(self.bench.case.dtype):
            # Also from oneDNN's log: the name of an operator says little about its kernel.
            kernels += proof.logged(self.step, torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON))
        return kernels

    def metrics(self) -> dict[str, float]:
        code = sum(len(source) for source in map(fingerprint.bare, self.sources))
        return {**super().metrics(), "graph_nodes": float(self.first.nodes), "generated_code": float(code)}

    def looks(self, device: Device) -> Mapping[str, Look]:
        return {**super().looks(device), "compiled": self._compiled}

    def _compiled(self) -> Mapping[str, Seen]:
        return fingerprint.compiled(self.first.graphs, self.first.frames, self.first.breaks, self.sources)

    def proof(self) -> list[Check]:
        # Read the counters first, before the proof runs further steps.
        later = Tally.read().since(self.compiled)
        code = "\n".join(self.sources)
        return [
            *super().proof(),
            *compilation.whole(self.first, later),
            compilation.written(self.sources),
            compilation.one_region(self.events),
            *self.bench.stack.proof_of_code(self.network, code, self.arguments, self.bench),
        ]
