"""TorchScript inference: optimise, trace and freeze under autocast, then let the graph optimise itself."""

from __future__ import annotations

from typing import Any

from ipexperf.bench import proof, registry
from ipexperf.bench.facts import Facts
from ipexperf.bench.kinds import Cell, Mode, Session, Workbench
from ipexperf.bench.lazy import torch
from ipexperf.bench.modes._inference import InferenceSession
from ipexperf.bench.precision import autocast
from ipexperf.result import Check

PROFILING_CALLS = 3
"""TorchScript looks at this many calls before its fused graph stands."""


class JitSession(InferenceSession):
    def build(self, network: Any, example: Any) -> Any:
        case = self.bench.case
        network = self.bench.stack.for_inference(network, case.dtype, example)
        self._untraced = self.bench.stack.proof_of_inference(network, case.dtype)
        with torch.no_grad(), autocast(case.device, case.dtype, cache=False):
            traced = torch.jit.freeze(torch.jit.trace(network, example))
            for _ in range(PROFILING_CALLS):
                traced(example)
        return traced

    def proof(self) -> list[Check]:
        case = self.bench.case
        with torch.no_grad(), autocast(case.device, case.dtype, cache=False):
            graph = str(self.network.graph_for(self.inputs[0]))
        return [
            *super().proof(),
            *self._untraced,
            proof.jitted(self.network),
            *self.bench.stack.proof_of_graph(graph, case.dtype),
        ]


class InferJit(Mode):
    name = "infer_jit"

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        del cell, facts
        return None

    def open(self, bench: Workbench) -> Session:
        return JitSession(bench)


registry.modes.add("infer_jit", InferJit())
