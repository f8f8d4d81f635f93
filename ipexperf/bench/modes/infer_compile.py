"""Inference through torch.compile: with the backend `ipex` on IPEX, with inductor and its freezing on stock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipexperf import dtypes
from ipexperf.bench import registry
from ipexperf.bench.api import COMPILED, Cell, Device, Kernel, Look, Mode, Seen, Session, Stack, Workbench
from ipexperf.bench.artifacts import artifact
from ipexperf.bench.evidence import compilation, fingerprint, proof, quantised
from ipexperf.bench.evidence.compilation import Tally
from ipexperf.bench.lazy import torch
from ipexperf.bench.machine.facts import Facts
from ipexperf.bench.modes import _script
from ipexperf.bench.modes._inference import KNOBS, InferenceSession
from ipexperf.result import Check


class CompiledSession(InferenceSession):
    def ready(self, example: Any) -> Any:
        if not dtypes.quantised(self.bench.case.dtype):
            return super().ready(example)
        return self.timed(lambda network: self.build(network, example), artifact.program(self.bench))

    def build(self, network: Any, example: Any) -> Any:
        loaded_before, before = compilation.loaded(), Tally.read()
        with compilation.afresh():
            self.network = self.bench.stack.compiled(network, example, self.bench)
            self.forward(example)
            self.sources = compilation.generated(loaded_before)
        self.compiled = Tally.read()
        self.first = self.compiled.since(before)
        return self.network

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
        int8 = dtypes.quantised(self.bench.case.dtype)
        return [
            *super().proof(),
            *compilation.whole(self.first, later),
            compilation.written(self.sources),
            compilation.one_region(self.events),
            *([quantised.code(code, self.layers)] if int8 else []),
            *self.bench.stack.proof_of_code(self.network, code, self.bench),
        ]


class InferCompile(Mode):
    name = "infer_compile"
    label = COMPILED
    graph = COMPILED
    plain = "infer"
    fresh = "torch.compile keeps processes and threads that were never tested under a fork"
    knobs = (*KNOBS, artifact.Quantisation())
    artifact = "program"

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        del cell
        return facts.uncompiled()

    def script(self, cell: Cell, stack: Stack) -> tuple[str, ...]:
        converted = stack.script("quantise", cell) if dtypes.quantised(cell.dtype) else ()
        return (*converted, *stack.script("compiled", cell), *_script.inferring(cell))

    def open(self, bench: Workbench) -> Session:
        return CompiledSession(bench)


registry.modes.add("infer_compile", InferCompile())
