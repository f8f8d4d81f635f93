"""Eager inference: call the optimised model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ipexperf import dtypes
from ipexperf.bench import registry
from ipexperf.bench.api import Kernel, Mode, Session, Stack, Workbench
from ipexperf.bench.artifacts import artifact
from ipexperf.bench.cell import Cell
from ipexperf.bench.model import Tensors
from ipexperf.bench.modes import _script
from ipexperf.bench.modes._inference import KNOBS, InferenceSession
from ipexperf.proof import label, quantised, templates
from ipexperf.result import Check


class EagerSession(InferenceSession):
    def build(self, network: Any, example: Any) -> Any:
        if dtypes.quantised(self.bench.case.dtype):
            return artifact.state(network, example, self.bench)
        return self.bench.stack.for_inference(network, example, self.bench)

    def kernels(self) -> list[Kernel]:
        return self._ran(self.step)

    def proof(self) -> list[Check]:
        converted = [quantised.modules(self.network)] if dtypes.quantised(self.bench.case.dtype) else []
        return [
            *super().proof(),
            self.same_work(),
            *converted,
            *self.bench.stack.proof_of_inference(self.network, self.bench),
        ]

    def same_work(self) -> Check:
        """Check that nothing is left out for batches that were seen before: an eager network may keep results."""
        known, other, *_ = self.inputs  # `proof` has run them, also where steps copy their batches
        # The same examples, so that they need the same work, unless that depends on their order.
        new = tuple(value.flip(0) for value in known)
        return label.same_work(self._operators, known, new, other)

    def _operators(self, batch: Tensors) -> int:
        """Count the arithmetic operators that run for a batch."""
        return sum(1 for kernel in self._ran(lambda: self.forward(batch)) if kernel.operands)

    def _ran(self, step: Callable[[], Any]) -> list[Kernel]:
        """Run one step and return its arithmetic kernels, those included that inductor wrote for parts of a network."""
        with templates.called() as written:
            kernels = label.of_stack(step, self.bench)
        return [*kernels, *written]


class Infer(Mode):
    name = "infer"
    label = "eager"
    knobs = (*KNOBS, artifact.QUANTISATION)
    artifact = "state"

    def script(self, cell: Cell, stack: Stack) -> tuple[str, ...]:
        return _script.inference(cell, stack)

    def open(self, bench: Workbench) -> Session:
        return EagerSession(bench)


registry.modes.add("infer", Infer())
