"""Inference through torch.compile, registered for the suite by `--perf-load infer_compile.py`."""

from __future__ import annotations

from typing import Any

from ipexperf.bench import registry
from ipexperf.bench.facts import Facts
from ipexperf.bench.kinds import Cell, Mode, Session, Workbench
from ipexperf.bench.lazy import torch
from ipexperf.bench.modes._inference import InferenceSession
from ipexperf.result import Check


class CompiledSession(InferenceSession):
    """The shared inference session, with a compiled network."""

    def build(self, network: Any, example: Any) -> Any:
        self._plain = self.bench.stack.for_inference(network, self.bench.case.dtype, example)
        compiled = torch.compile(self._plain, dynamic=False)
        self.network = compiled
        self.forward(example)
        return compiled

    def proof(self) -> list[Check]:
        graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]  # noqa: SLF001 - torch has no public count
        return [
            *super().proof(),
            *self.bench.stack.proof_of_inference(self._plain, self.bench.case.dtype),
            Check("compiled", graphs == 1, f"{graphs} compiled graphs", "1: no graph break, no recompilation"),
        ]


class InferCompile(Mode):
    """The mode `infer_compile`."""

    name = "infer_compile"

    def why_not(self, cell: Cell, facts: Facts) -> str | None:
        del facts
        return None if cell.stack == "stock" else f"infer_compile is written for the stack stock, not {cell.stack}"

    def open(self, bench: Workbench) -> Session:
        return CompiledSession(bench)


registry.modes.add("infer_compile", InferCompile())
