"""Inference through torch.compile: with the backend `ipex` on IPEX, with inductor and its freezing on stock."""

from __future__ import annotations

from typing import Any

from ipexperf import dtypes
from ipexperf.bench import registry
from ipexperf.bench.api import Session, Stack, Workbench
from ipexperf.bench.artifacts import artifact
from ipexperf.bench.cell import Cell
from ipexperf.bench.modes import _script
from ipexperf.bench.modes._compiled import CompiledMode, CompiledSession
from ipexperf.bench.modes.infer import Infer
from ipexperf.proof import quantised
from ipexperf.result import Check


class CompiledInference(CompiledSession):
    def ready(self, example: Any) -> Any:
        if not dtypes.quantised(self.bench.case.dtype):
            return super().ready(example)
        return self.timed(lambda network: self.build(network, example), artifact.program(self.bench))

    def proof(self) -> list[Check]:
        int8 = dtypes.quantised(self.bench.case.dtype)
        checks = super().proof()
        return [*checks, *([quantised.code(self.compiled.code, self.layers)] if int8 else [])]


class InferCompile(CompiledMode, Infer):
    name = "infer_compile"
    plain = "infer"
    artifact = "program"

    def script(self, cell: Cell, stack: Stack) -> tuple[str, ...]:
        converted = stack.script("quantise", cell) if dtypes.quantised(cell.dtype) else ()
        return (*converted, *stack.script("compiled", cell), *_script.inferring(cell))

    def open(self, bench: Workbench) -> Session:
        return CompiledInference(bench)


registry.modes.add("infer_compile", InferCompile())
