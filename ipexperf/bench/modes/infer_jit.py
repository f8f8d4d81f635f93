"""TorchScript inference: optimise, trace and freeze under autocast, then run until the graph is optimised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipexperf import dtypes
from ipexperf.bench import plain_outputs, registry
from ipexperf.bench.api import TRACED, Look, Session, Stack, Workbench
from ipexperf.bench.artifacts import artifact
from ipexperf.bench.cell import Cell
from ipexperf.bench.device import Device
from ipexperf.bench.lazy import torch
from ipexperf.bench.modes import _script
from ipexperf.bench.modes._inference import InferenceSession
from ipexperf.bench.modes.infer import Infer
from ipexperf.bench.networks import flaws
from ipexperf.bench.precision import autocast
from ipexperf.proof import fingerprint, label, quantised
from ipexperf.result import Check

PROFILING_CALLS = 3
"""Number of calls after which TorchScript's fused graph is final."""


class JitSession(InferenceSession):
    def ready(self, example: Any) -> Any:
        if not dtypes.quantised(self.bench.case.dtype):
            return super().ready(example)
        # As in deployment: load the network that another process has quantised, traced and frozen.
        self.network = artifact.script(self.bench)
        self._untraced = self.bench.stack.proof_of_inference(self.network, self.bench)
        self.settle(example)
        return self.network

    def build(self, network: Any, example: Any) -> Any:
        self.network = self.trace(self.optimise(network, example), example)
        self.settle(example)
        return self.network

    def optimise(self, network: Any, example: Any) -> Any:
        return self.bench.stack.for_inference(network, example, self.bench)

    def trace(self, network: Any, example: Any) -> Any:
        case = self.bench.case
        # Checked before tracing: the graph has no modules.
        self._untraced = self.bench.stack.proof_of_inference(network, self.bench)
        with torch.no_grad(), autocast(case.device, case.dtype, cache=False):
            return torch.jit.freeze(plain_outputs.traced(network, example, check=self.bench.device.double))

    @property
    def script(self) -> Any:
        """The frozen graph that runs."""
        return self.network

    def settle(self, example: Any) -> None:
        """Call the graph until it is in its final form."""
        for _ in range(PROFILING_CALLS):
            self.forward(example)

    def graph(self) -> str:
        """Return the printed graph in its final form."""
        with torch.no_grad(), autocast(self.bench.case.device, self.bench.case.dtype, cache=False):
            return str(self.script.graph_for(*self.inputs[0]))

    def looks(self, device: Device) -> Mapping[str, Look]:
        return {**super().looks(device), "graph": lambda: fingerprint.graph(self.graph())}

    def proof(self) -> list[Check]:
        case, graph = self.bench.case, self.graph()
        converted = [quantised.graph(graph, self.layers)] if dtypes.quantised(case.dtype) else []
        return [
            *super().proof(),
            *self._untraced,
            label.jitted(self.script),
            flaws.control_flow(self.untouched(), self.example()),
            *converted,
            *self.bench.stack.proof_of_graph(graph, self.bench),
        ]


class InferJit(Infer):
    name = "infer_jit"
    label = TRACED
    graph = TRACED
    plain = "infer"
    artifact = "script"

    def script(self, cell: Cell, stack: Stack) -> tuple[str, ...]:
        return _script.inference(cell, stack, _script.TRACE)

    def open(self, bench: Workbench) -> Session:
        return JitSession(bench)


registry.modes.add("infer_jit", InferJit())
