"""The common base of modes that go through torch.compile: compiling afresh, and the proof that a step is that code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ipexperf import dtypes
from ipexperf.bench import registry
from ipexperf.bench.api import COMPILED, Captured, Kernel, Look, Mode, Session
from ipexperf.bench.cell import Cell
from ipexperf.bench.device import Device
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.model import Tensors
from ipexperf.bench.modes._inference import InferenceSession
from ipexperf.proof import compilation, fingerprint, label, profiler, templates
from ipexperf.proof.compilation import Tally
from ipexperf.result import Check


class CompiledMode(Mode):
    """What all modes share that go through torch.compile. Each also derives from its plain mode."""

    label = COMPILED
    graph = COMPILED
    fresh = "torch.compile keeps processes and threads that were never tested under a fork"

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        return super().why_not(cell, facts) or registry.devices.get(cell.device).uncompiled(facts)


class Compilation:
    """The result of torch.compile in this process, in the one call that may compile."""

    def __init__(self, call: Callable[[], None]) -> None:
        """Make the call. Code that earlier calls or other launches compiled is not reused."""
        loaded_before, before = len(templates.modules()), Tally.read()
        with compilation.afresh():
            call()
            self.sources = compilation.generated(loaded_before)
        self._after = Tally.read()
        self._first = self._after.since(before)

    @property
    def code(self) -> str:
        """All Python code that inductor generated."""
        return "\n".join(self.sources)

    def metrics(self) -> dict[str, float]:
        size = sum(len(source) for source in map(fingerprint.bare, self.sources))
        return {"graph_nodes": float(self._first.nodes), "generated_code": float(size)}

    def look(self) -> Mapping[str, Captured]:
        return fingerprint.compiled(self._first.graphs, self._first.frames, self._first.breaks, self.sources)

    def proof(self, passes: tuple[str, ...], device: str) -> list[Check]:
        """Check that the call made the code of one graph, for these passes, and that nothing was compiled since then.

        Call it before the proof runs steps of its own.
        """
        checks = compilation.whole(self._first, Tally.read().since(self._after))
        return [*checks, compilation.written(self.sources, passes), *compilation.on_device(self.sources, device)]


class CompiledSteps(Session):
    """A session whose steps run as code that torch.compile generated in this process."""

    compiled: Compilation

    @property
    def generated(self) -> Sequence[str]:
        return self.compiled.sources

    def metrics(self) -> dict[str, float]:
        return {**super().metrics(), **self.compiled.metrics()}

    def looks(self, device: Device) -> Mapping[str, Look]:
        return {**super().looks(device), "compiled": self.compiled.look}


class CompiledSession(CompiledSteps, InferenceSession):
    """Inference through such code."""

    def build(self, network: Any, example: Tensors) -> Any:
        def compile_it() -> None:
            self.network = self.bench.stack.compiled(network, example, self.bench)
            self.call_first(example)

        self.compiled = Compilation(compile_it)
        return self.network

    def call_first(self, example: Tensors) -> None:
        """Call the network as a step does. The first call compiles it."""
        self.forward(example)

    @property
    def arguments(self) -> int:
        """Number of tensors that a step gives to the compiled code, if the weights are constants of it."""
        return len(self.held_out.inputs)

    def kernels(self) -> list[Kernel]:
        self.events = profiler.traced(self.step)
        self.templates = templates.kernels(self.compiled.code)
        kernels = label.kernels(self.events) + self.templates
        if dtypes.quantised(self.bench.case.dtype):
            # Also from oneDNN's log: the name of an operator says little about its kernel.
            kernels += label.logged(self.step, torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON))
        return kernels

    def proof(self) -> list[Check]:
        compiled = self.compiled.proof(compilation.INFERENCE, self.bench.case.device)
        return [
            *super().proof(),
            *compiled,
            compilation.one_region(self.events, len(self.templates)),
            *self.bench.stack.proof_of_code(self.network, self.compiled.code, self.arguments, self.bench),
        ]
